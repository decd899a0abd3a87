"""What the examples of trained draft heads show, by name: checks of the traces of their lanes."""

from decoders.trace.events import Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers.expected_in_speculation import same_text_cheaper
from tests.helpers.trace_readings import forwards


def the_path_helps(blind, sees_the_path, greedy):
    same_text_cheaper(blind, greedy)
    assert sees_the_path.output() == greedy.output() and forwards(sees_the_path) < forwards(blind)


def slots_guess(own_pass, prompts, states, greedy):
    """At least two tokens per round of two passes; the others draft and verify in one forward."""
    assert own_pass.output() == prompts.output() == states.output() == greedy.output()
    assert len(own_pass.steps) <= len(greedy.output()) / 2 + 2
    assert forwards(states) < forwards(prompts) < 0.9 * forwards(greedy)


def a_look_helps(keys, memories, gate_open, gate_closed):
    assert keys.output() == memories.output() == gate_open.output() == gate_closed.output()
    assert max(map(forwards, (keys, memories, gate_open))) < 0.7 * len(keys.output())
    assert forwards(gate_open) < forwards(gate_closed)


def units_at_once(low, usual, single):
    """The lower the bound, the more is written per forward; at 1 each forward writes one token."""
    assert len(single.output()) == len(single.steps) and len(low.steps) < len(usual.steps)
    assert len(usual.steps) / len(usual.output()) < 1 and low.badge == "relaxed"


def one_forward_drafts(block, masks, steps, greedy):
    """Greedy decoding's text in fewer forwards; a draft costs one forward, in the third lane several."""
    assert block.output() == masks.output() == steps.output() == greedy.output()
    assert max(forwards(block), forwards(masks)) < 0.8 * forwards(greedy)
    drafts = [one.costs.totals()["draft_forwards"] / len(one.steps) for one in (block, masks, steps)]
    assert max(drafts[:2]) <= 1 < 3 < drafts[2]


def a_surer_tree_pays(fixed, grown, chain):
    assert fixed.output() == grown.output() == chain.output()
    assert forwards(grown) <= forwards(fixed) < forwards(chain) < len(chain.output())
    rejected = [sum(v.status == "rejected" for s in t.steps for v in s.of(Verdict)) for t in (chain, grown)]
    lengths = {e.parts["drafted"] for s in chain.steps for e in s.of(Measure) if e.name == "expected length"}
    assert len(lengths) > 1 and rejected[0] > 0


def the_path_is_read(path, deeper, sideways, greedy):
    for trace in (path, deeper, sideways):
        assert trace.output() == greedy.output() and forwards(trace) < 0.8 * forwards(greedy)


def beginnings_are_shared(beams, chains, one):
    """Entries of several chains are fewer nodes; several chains are right more often than one."""
    assert beams.output() == chains.output() == one.output()
    assert forwards(beams) < forwards(one)
    for trace in (beams, chains):
        packed = [e for step in trace.steps for e in step.of(Measure) if e.name == "packed"]
        assert packed and sum(e.parts["entries"] for e in packed) > 1.3 * sum(e.total for e in packed)


def few_nodes_or_many(few, many):
    """No round of the first has more than four nodes; gates are recorded in both."""
    assert few.output() == many.output() and forwards(many) <= forwards(few) < len(few.output())
    assert max(len(guesses_of(step)) for step in few.steps) == 4
    assert max(len(guesses_of(step)) for step in many.steps) == 25
    assert all(any(e.name == "gate" for step in t.steps for e in step.of(Measure)) for t in (few, many))


def guesses_of(step):
    return [e for e in step.of(Propose) if e.source == "draft"]


def a_block_is_refined(block, refined, rescored, relaxed):
    """The same text in fewer forwards with other paths; a relaxed test also takes fewer, and says so."""
    assert block.output() == refined.output() == rescored.output()
    assert forwards(refined) < forwards(block) < len(block.output())
    assert relaxed.badge == "relaxed" and forwards(relaxed) < forwards(block)


def all_guess_from_states(hybrid, blocks, trigrams, layers):
    traces = (hybrid, blocks, trigrams, layers)
    assert len({tuple(trace.output()) for trace in traces}) == 1
    assert all(forwards(trace) < 0.8 * len(trace.output()) for trace in traces)
    drafts = [trace.costs.totals()["draft_forwards"] / len(trace.steps) for trace in (blocks, layers)]
    assert drafts[0] < drafts[1]  # two levels per pass


def streams_agree(agreed, without_roll_back, without_notes):
    colours = [
        {line.split()[-1] for line in one.text().removesuffix("<|endoftext|>").splitlines()}
        for one in (agreed, without_roll_back, without_notes)
    ]
    back = [
        sum(v.status == "rejected" for s in one.steps for v in s.of(Verdict))
        for one in (agreed, without_roll_back, without_notes)
    ]
    assert len(colours[0]) == 1 < min(map(len, colours[1:]))
    assert back[0] > 0 == back[1] == back[2]


SHOWS = {
    "Streams that agree": streams_agree,
    "Heads beside the target": the_path_helps,
    "Heads that read the path": the_path_is_read,
    "Chains that share prefixes": beginnings_are_shared,
    "Four nodes or twenty-five": few_nodes_or_many,
    "The first draft heads": a_block_is_refined,
    "One layer, three trees": a_surer_tree_pays,
    "A serial start, a parallel end": all_guess_from_states,
    "All guesses in one forward": one_forward_drafts,
    "Guesses in the target's own forward": slots_guess,
    "A look into the target": a_look_helps,
    "A name at once": units_at_once,
}
