"""The point of each example that drafts or guesses: `SHOWS` maps its title to a check of its traces."""

from decoders.trace.events import Commit, Forward, Note, Propose, Verdict
from decoders.trace.reasons import Code
from decoders.trace.scores import Measure
from decoders.trace.trace import Trace
from tests.helpers.batch_results import drafted as guesses
from tests.helpers.batch_results import rounds as batch_rounds
from tests.helpers.batch_results import written
from tests.helpers.trace_readings import forwards, statuses, total


def same_text_cheaper(quick, greedy):
    assert quick.output() == greedy.output() and forwards(quick) < 0.8 * forwards(greedy)


def guesses_pass_and_fail(speculative, greedy):
    same_text_cheaper(speculative, greedy)
    assert {"accepted", "rejected", "resampled"} <= statuses(speculative)


def chance_accepts(speculative, sample):
    assert {"accepted", "rejected", "resampled"} <= statuses(speculative)
    assert forwards(speculative) < forwards(sample)


def other_tokens_carry_over(text, tokens, greedy):
    assert text.output() == greedy.output() and forwards(text) < 0.5 * forwards(greedy)
    assert {"accepted", "rejected", "resampled"} <= statuses(tokens)
    assert tokens.badge == "exact in distribution"


def ahead_and_in_vain(overlapped, in_turn):
    """The same text with and without waiting; drafting ahead drafts more per accepted token."""
    assert overlapped.output() == in_turn.output()
    wasted = [t.costs.totals()["proposed"] / t.costs.totals()["accepted"] for t in (overlapped, in_turn)]
    assert wasted[0] > wasted[1]


def fewer_start_anew(one, branches, sequences):
    """Fewer rounds that the target ends with its own token; several first tokens side by side."""

    def anew(trace):
        return sum(any(v.status == "resampled" for v in step.of(Verdict)) for step in trace.steps)

    assert sequences.output() == branches.output() == one.output() and anew(branches) < anew(one)
    assert any(p.slot for step in sequences.steps for p in step.of(Propose))


def tree_settles_more(chain, tree):
    assert tree.output() == chain.output() and forwards(tree) < forwards(chain)
    assert tree.costs.totals()["proposed"] > chain.costs.totals()["proposed"]


def one_of_four_stays(chain, chains):
    assert {"accepted", "rejected", "never reached"} <= statuses(chains)
    assert forwards(chains) < forwards(chain)


def fewer_nodes_do_as_much(tree, *others):
    for trace in others:
        assert trace.output() == tree.output() and forwards(trace) < 1.3 * forwards(tree)
        assert trace.costs.totals()["target_tokens"] < 0.8 * tree.costs.totals()["target_tokens"]


def colder_goes_deeper(warm, cold):
    assert cold.output() == warm.output() and forwards(cold) < forwards(warm)
    assert cold.costs.totals()["draft_forwards"] > warm.costs.totals()["draft_forwards"]


def levels_need_fewer_drafts(single, levels):
    assert levels.output() == single.output() and a_round(levels) > 8
    assert levels.costs.totals()["draft_forwards"] < 0.8 * single.costs.totals()["draft_forwards"]


def a_round(trace: Trace) -> float:
    """Drafted nodes per round."""
    return trace.costs.totals()["proposed"] / len(trace.steps)


def draws_put_back_share_nodes(apart, back):
    assert a_round(back) < a_round(apart)
    assert {"accepted", "rejected"} <= statuses(back)


def a_block_keeps_more(token, block):
    assert forwards(block) < forwards(token)
    why = [reason for step in block.steps for e in step.of(Verdict) for reason in e.why]
    tests = [reason.numbers for reason in why if reason.code is Code.BLOCK]
    assert any(not test["passed"] and test["kept"] > test["length"] for test in tests)


def wastes_less(long, stopped):
    def wasted(trace):
        return trace.costs.totals()["proposed"] - trace.costs.totals()["accepted"]

    assert stopped.output() == long.output() and wasted(stopped) < 0.7 * wasted(long)


def load_shortens(*traces):
    drafted = [trace.costs.totals()["proposed"] for trace in traces]
    assert len({tuple(trace.output()) for trace in traces}) == 1
    assert drafted[0] > drafted[1] > drafted[2]


def for_each_forward(trace: Trace) -> float:
    """Tokens of all texts of a batch per target forward."""
    return sum(map(len, written(trace).values())) / forwards(trace)


def texts_share_forwards(together, alone):
    assert together.output() == alone.output() and len(written(together)) == 4
    assert for_each_forward(together) > 2 * for_each_forward(alone)


def submitted(trace: Trace) -> list[set[int]]:
    """Round by round, how many guesses the texts of a batch submitted."""
    return [
        {sum(cell.state != "pruned" for cell in guesses(cells)) for cells in texts.values()}
        for texts in batch_rounds(trace)
    ]


def a_sure_text_takes_more(chosen, equal):
    assert chosen.output() == equal.output() and "pruned" in statuses(chosen)
    assert any(max(lengths) > 3 > min(lengths) for lengths in submitted(chosen))
    assert all(max(lengths) <= 3 for lengths in submitted(equal))


def padding(trace: Trace) -> list[list[float]]:
    """Round by round, the columns of padding of each text of a batch."""
    return [[e.total for e in step.of(Measure) if e.name == "padding"] for step in trace.steps]


def rows_are_padded_or_of_one_length(padded, grouped, wrong):
    assert written(padded) == written(grouped) != written(wrong)
    assert any(map(sum, padding(padded))) and forwards(grouped) >= forwards(padded)
    assert any(len(columns) > 1 and not sum(columns) for columns in padding(grouped))


def strays(trace):
    return trace.costs.mean_total_variation


def relaxed_is_cheaper(exact, *relaxed):
    assert strays(exact) is None
    for trace in relaxed:
        assert forwards(trace) < forwards(exact) and 0.01 < strays(trace) < 0.5


def wider_is_cheaper(wide, narrow):
    assert forwards(wide) < forwards(narrow) and strays(wide) > strays(narrow)


def a_judge_keeps_more(judged, exact):
    assert forwards(judged) < forwards(exact) and strays(judged) > 0 and strays(exact) is None


def neighbours_lend(lent, alone):
    assert strays(lent) > 0.01 and strays(alone) is None
    assert lent.costs.totals()["accepted"] / lent.costs.totals()["proposed"] > (
        alone.costs.totals()["accepted"] / alone.costs.totals()["proposed"]
    )


def same_text(jacobi, greedy):
    assert jacobi.output() == greedy.output() and forwards(jacobi) <= forwards(greedy)


def same_text_in_parts(*traces):
    *parts, greedy = traces
    for own in parts:
        assert own.output() == greedy.output() and own.costs.totals()["draft_forwards"] == 0
        scopes = {e.scope for step in own.steps for e in step.events if isinstance(e, Forward)}
        assert len(scopes) > 1 and own.costs.totals()["proposed"] > 0


def doubt_saves_guesses(doubting, sure, greedy):
    assert doubting.output() == sure.output() == greedy.output()
    assert doubting.costs.totals()["proposed"] < sure.costs.totals()["proposed"]
    scopes = {e.scope for step in sure.steps for e in step.of(Forward)}
    assert any(scope and "layers 1-" in scope for scope in scopes)


def a_block_is_cheaper(exact, lenient, greedy):
    assert exact.output() == greedy.output() and exact.badge == "lossless: equal to greedy"
    assert lenient.costs.target_forwards <= exact.costs.target_forwards < 0.5 * greedy.costs.target_forwards


def a_faster_stream_guesses_better(fast, usual, adapter):
    assert fast.output() == usual.output() == adapter.output()
    assert fast.costs.totals()["accepted"] > usual.costs.totals()["accepted"]


def calibration_pays(calibrated, not_so, greedy):
    def passed(trace):
        return trace.costs.totals()["accepted"] / trace.costs.totals()["proposed"]

    assert calibrated.output() == not_so.output() == greedy.output() and passed(calibrated) > passed(not_so)


def fewer_layers_cost_less_and_say_worse(ten, six, greedy):
    assert forwards(six) < forwards(ten) < forwards(greedy) + 1
    assert total(six) / len(six.output()) < total(greedy) / len(greedy.output())


def cheaper_a_little(quick, greedy):
    assert quick.output() == greedy.output() and forwards(quick) < forwards(greedy)


def both_sources_serve(rasd, rest):
    assert rasd.output() == rest.output() and forwards(rasd) <= forwards(rest)
    proposed = {e.node: e.source for step in rasd.steps for e in step.of(Propose)}
    kept = {proposed[n] for step in rasd.steps for commit in step.of(Commit) for n in commit.nodes}
    assert {"draft", "store"} <= set(proposed.values()) and "draft" in kept


def a_match_sets_the_length(suffixes, lookup):
    """Fewer guesses, of which more pass, from both trees."""
    assert suffixes.output() == lookup.output() and forwards(suffixes) < forwards(lookup)
    ours, theirs = (trace.costs.totals() for trace in (suffixes, lookup))
    assert ours["proposed"] < theirs["proposed"] and ours["accepted"] > theirs["accepted"]
    assert {"prompt", "store"} <= {e.source for step in suffixes.steps for e in step.of(Propose)}


def a_part_of_the_prompt_guesses(exact, moved, greedy):
    assert exact.output() == greedy.output() and forwards(exact) < 0.8 * forwards(greedy)
    assert strays(exact) is None and 0.0 < strays(moved) < 0.5
    read = next(e for e in exact.steps[0].of(Forward) if e.model == "draft")
    assert read.tokens < len(exact.prompt) and {"accepted", "rejected"} <= statuses(exact)


def parts_of_the_cache_check(lossy, strict, greedy):
    assert strict.output() == greedy.output() and strays(strict) is None and 0.0 <= strays(lossy) < 0.6
    for trace in (lossy, strict):
        scopes = [e.scope for s in trace.steps for e in s.of(Forward) if e.model == "target"]
        assert None in scopes and any(scope and scope.endswith("places") for scope in scopes)


def same_draft_in_fewer_forwards(staged, alone):
    a, b = staged.costs.totals(), alone.costs.totals()
    assert staged.output() == alone.output() and forwards(staged) == forwards(alone)
    assert a["proposed"] == b["proposed"] and a["draft_forwards"] < 0.9 * b["draft_forwards"]


def memory_shortens(tight, roomy):
    drafted = [trace.costs.per_step_drafted for trace in (tight, roomy)]
    assert tight.output() == roomy.output() and forwards(tight) > forwards(roomy)
    assert sum(drafted[0]) < sum(drafted[1]) and drafted[0][0] == max(drafted[0]) > drafted[0][-1]


def asked_early(glanced, plain, greedy):
    """Twelve forwards of greedy's text; then the question, which follows guesses in one lane."""
    forced = [
        [e.reason for s in t.steps for e in s.of(Verdict) if e.status == "forced"] for t in (glanced, plain)
    ]
    exact = sum(len(c.nodes) for s in glanced.steps[:12] for c in s.of(Commit))
    assert exact >= 12 and glanced.output()[:exact] == greedy.output()[:exact] == plain.output()[:exact]
    assert any("guess" in why for why in forced[0]) and not any("guess" in why for why in forced[1])


def draws_stay(by_ratio, by_redraw, sample):
    for trace in (by_ratio, by_redraw):
        assert {"accepted", "rejected"} <= statuses(trace)
        assert forwards(trace) / len(trace.output()) < forwards(sample) / len(sample.output())


def fewer_words_same_text(trimmed: Trace, whole: Trace, greedy: Trace) -> None:
    """All write greedy's text, and no more tokens of the trimmed draft are accepted than of the full one."""
    assert trimmed.output() == whole.output() == greedy.output()
    accepted = [trace.costs.totals()["accepted"] for trace in (trimmed, whole)]
    assert 0 < accepted[0] <= accepted[1]


def learning_pays(learning, frozen):
    """The same text; the target accepts more from the draft that learns from earlier requests."""
    assert learning.output() == frozen.output()
    shares = [
        [int(text.split(": ")[1].partition("%")[0]) for text in notes(trace) if text.startswith("Request ")]
        for trace in (learning, frozen)
    ]
    assert len(shares[0]) == len(shares[1]) == 8 and sum(shares[0]) > sum(shares[1])
    assert any("has learned from" in text for text in notes(learning))


def shallow_where_sure(nested, whole, greedy):
    """The same text; in each lane some guesses pass, and some of the first left after the first layer."""
    assert nested.output() == whole.output() == greedy.output()
    depths = [
        {score.level for step in trace.steps for score in step.of(Measure) if score.total > score.limit}
        for trace in (nested, whole)
    ]
    assert depths == [{"exit 1", "exit 2", "exit 3"}, {"exit 3"}]
    assert all(trace.costs.totals()["accepted"] for trace in (nested, whole))


def notes(trace) -> list[str]:
    return [note.text for step in trace.steps for note in step.of(Note)]


SHOWS = {
    "A small model guesses ahead": guesses_pass_and_fail,
    "A draft with fewer words": fewer_words_same_text,
    "A draft that learns on the job": learning_pays,
    "As much of a draft as it takes": shallow_where_sure,
    "Guesses and chance": chance_accepts,
    "A draft with other tokens": other_tokens_carry_over,
    "Neither model waits": ahead_and_in_vain,
    "Ahead in several ways": fewer_start_anew,
    "A chain or a tree of guesses": tree_settles_more,
    "Guesses for the guesser": same_draft_in_fewer_forwards,
    "A megabyte for guessing": memory_shortens,
    "One chain or four": one_of_four_stays,
    "Trees that grow": fewer_nodes_do_as_much,
    "A colder draft": colder_goes_deeper,
    "One by one or level by level": levels_need_fewer_drafts,
    "Trees of a planned form": fewer_nodes_do_as_much,
    "Drawn again or not": draws_put_back_share_nodes,
    "One draft, two verifiers": a_block_keeps_more,
    "Faster, and no longer exact": relaxed_is_cheaper,
    "Where the two agree": wider_is_cheaper,
    "Similar tokens vouch for each other": neighbours_lend,
    "Right or only different": a_judge_keeps_more,
    "When to stop guessing": wastes_less,
    "Guessing under load": load_shortens,
    "Four texts at once": texts_share_forwards,
    "A budget for four texts": a_sure_text_takes_more,
    "Padding, and how to avoid it": rows_are_padded_or_of_one_length,
    "A text that repeats itself": same_text_cheaper,
    "Copying the input": same_text,
    "Looked up in other texts": cheaper_a_little,
    "As long as the match": a_match_sets_the_length,
    "Three tokens in a row": cheaper_a_little,
    "A draft model and a store": both_sources_serve,
    "Second thoughts": same_text_cheaper,
    "A model that guesses for itself": same_text_in_parts,
    "Out of the layers, out of the draft": doubt_saves_guesses,
    "A block at once": a_block_is_cheaper,
    "A second stream runs ahead": a_faster_stream_guesses_better,
    "Layers at the same time": calibration_pays,
    "A window of guesses": same_text_cheaper,
    "Fewer layers, another text": fewer_layers_cost_less_and_say_worse,
    "A glance at a long prompt": a_part_of_the_prompt_guesses,
    "A part of the cache checks": parts_of_the_cache_check,
    "All positions at once": same_text,
    "An answer before the end": asked_early,
    "Jacobi with chance": draws_stay,
}
