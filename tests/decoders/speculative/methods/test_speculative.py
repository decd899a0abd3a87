"""Speculative decoding: equal to greedy and to transformers, its events, its caches, and what theory says it
gains.
"""

import math

import pytest

from decoders.chooser import Exhaustive, Random, Script
from decoders.explain.verdicts import reason_of
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.speculative import default_verifier
from decoders.speculative.interfaces import Verifier
from decoders.speculative.theory import best_length, expected_tokens, speedup
from decoders.testing import random_table
from decoders.trace.token_text import visible
from tests.helpers.shipped_pair import PROMPTS, assert_same, decode, generated, greedy, pair

SAMPLED = {"temperature": 1.0}


def tables(eos: frozenset[int] = frozenset(), vocabulary: int = 5) -> dict[str, TableModel]:
    return {
        "target": TableModel(random_table(1, vocabulary, 2.0), vocabulary, eos),
        "draft": TableModel(random_table(2, vocabulary, 2.0), vocabulary, eos),
    }


def drafted(step) -> list:
    return [e for e in step.events if type(e).__name__ == "Propose" and e.source == "draft"]


def events(step, kind: str) -> list:
    return [e for e in step.events if type(e).__name__ == kind]


# ---- equality ------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", PROMPTS[::4])
def test_greedy_output_is_greedy_decoding(prompt):
    assert_same(decode("speculative", prompt).output(), greedy(prompt), prompt)


@pytest.mark.parametrize("prompt", PROMPTS[::4])
def test_greedy_output_is_assisted_generation(prompt):
    assert_same(decode("speculative", prompt).output(), generated(prompt, assistant_model="draft"), prompt)


@pytest.mark.parametrize("length", [1, 3, 12, 32])
def test_any_draft_length_gives_the_same_text(length):
    found = decode("speculative", PROMPTS[0], {"num_assistant_tokens": length}).output()
    assert_same(found, greedy(PROMPTS[0]), PROMPTS[0])


def test_a_seed_makes_a_sampled_run_reproducible_and_stepping_changes_nothing():
    first = decode("speculative", PROMPTS[1], SAMPLED, 24, seed=5)
    ids = pair()["target"].encode(PROMPTS[1])
    lane = Lane("speculative", ids, pair(), SAMPLED, seed=5, limits=Limits(24))
    while lane.advance():
        pass
    assert lane.trace.output() == first.output()
    assert decode("speculative", PROMPTS[1], SAMPLED, 24, seed=6).output() != first.output()


# ---- what theory says ----------------------------------------------------------------------------


def test_formulas():
    assert expected_tokens(0.8, 5) == pytest.approx(3.6893, abs=5e-5)
    assert speedup(0.8, 5, 0.05) == pytest.approx(2.9514, abs=5e-5)
    assert expected_tokens(0.7, 4) == pytest.approx(2.7731, abs=5e-5)
    assert speedup(0.7, 4, 0.1) == pytest.approx(1.9808, abs=5e-5)
    assert best_length(0.8, 0.05) == 8 and best_length(0.6, 0.1) == 3
    assert expected_tokens(1.0, 4) == 5 and best_length(0.05, 0.1) == 0  # pays only if alpha > cost


def test_a_round_gains_what_the_formula_says():
    models = {
        "target": TableModel(lambda tokens: (0.3, 0.4, 0.3), 3),
        "draft": TableModel(lambda tokens: (0.6, 0.3, 0.1), 3),
    }

    def gained(chooser) -> int:
        lane = Lane("speculative", [0], models, {"num_assistant_tokens": 4, **SAMPLED}, chooser=chooser)
        lane.advance()
        lane.close()
        return lane.written

    law = Exhaustive().distribution(gained)
    assert sum(tokens * chance for tokens, chance in law.items()) == pytest.approx(
        expected_tokens(0.7, 4), abs=1e-12
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_that_is_the_target_is_always_right(temperature):
    same = {"target": pair()["target"], "draft": pair()["target"]}
    ids = same["target"].encode(PROMPTS[3])
    parameters = {"num_assistant_tokens": 3, "temperature": temperature}
    trace = Lane("speculative", ids, same, parameters, limits=Limits(32)).run()
    assert trace.output()[-1] not in same["target"].eos
    assert trace.costs.per_step_accepted == [3] * 8 and trace.costs.metrics()["mean_acceptance_length"] == 4


def test_the_first_drafted_token_is_accepted_as_often_as_p_and_q_overlap(monkeypatch):
    rounds = []

    def watched(inputs):
        verification = real.verify(inputs)
        root = inputs.draft.root
        if inputs.draft.nodes:
            overlap = float(inputs.p[root].minimum(inputs.draft.q[root]).sum())
            rounds.append((overlap, verification.tests[0].accepted))
        return verification

    real = default_verifier.RECURSIVE_REJECTION
    monkeypatch.setattr(default_verifier, "RECURSIVE_REJECTION", Verifier(watched, real.exact_for))
    for seed, prompt in enumerate(PROMPTS[:8]):  # lanes with one seed would share their luck
        decode("speculative", prompt, {"num_assistant_tokens": 2, **SAMPLED}, 40, seed=seed)
    assert len(rounds) > 100
    excess = sum(accepted - overlap for overlap, accepted in rounds)
    assert abs(excess) < 3 * math.sqrt(sum(overlap * (1 - overlap) for overlap, _ in rounds))


# ---- events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, SAMPLED, {"temperature": 0.7, "top_p": 0.9, "top_k": 40}])
def test_every_round_tells_its_whole_story(parameters):
    trace = decode("speculative", PROMPTS[3], parameters, 48, seed=2)
    nodes = trace.nodes()
    for step in trace.steps:
        born, verdicts = drafted(step), {v.node: v for v in events(step, "Verdict")}
        commit = events(step, "Commit")[0]
        assert len(events(step, "Commit")) == 1
        assert all(e.node in verdicts for e in born)
        accepted = [e.node for e in born if verdicts[e.node].status == "accepted"]
        assert commit.nodes[: len(accepted)] == accepted
        ended = nodes[commit.nodes[-1]][1] in pair()["target"].eos
        assert len(commit.nodes) == len(accepted) + (0 if ended and len(commit.nodes) == len(accepted) else 1)
        rejected = [v for v in verdicts.values() if v.status == "rejected"]
        assert len(rejected) <= 1
        if born and len(commit.nodes) > len(accepted):
            assert verdicts[commit.nodes[-1]].status == ("resampled" if rejected else "bonus")
        for v in verdicts.values():
            assert v.why and (v.status == "never reached" or v.p is not None)
        if rejected and trace.parameters["temperature"] == 0.0:
            word = visible(trace.vocabulary[nodes[commit.nodes[-1]][1]])
            reason = reason_of(rejected[0], trace.vocabulary)
            assert reason.startswith(f"Rejected: the target prefers “{word}” (")
        targets = [d.node for d in events(step, "Distribution") if d.view == "target"]
        assert targets == [nodes[n][0] for n in commit.nodes] and not ended
        assert all(x is not None and x <= 0 for x in commit.logprobs)
    total = trace.costs
    assert total.proposed == sum(total.per_step_drafted) and total.accepted == sum(total.per_step_accepted)
    assert trace.output()[-1] not in pair()["target"].eos  # which would leave the last round without a bonus
    assert len(trace.output()) == total.accepted + len(trace.steps)


def test_forwards_and_caches_after_each_round():
    """Target: everything but its newest token. Draft: the same, less the last drafted token if all were
    accepted.
    """
    ids = pair()["target"].encode(PROMPTS[0])
    lane = Lane("speculative", ids, pair(), {"num_assistant_tokens": 3}, limits=Limits(40))
    all_accepted, seen = False, set()
    while step := lane.advance():
        forwards = events(step, "Forward")
        of_draft = [f.tokens for f in forwards if f.model == "draft" and f.kind == "draft"]
        born = drafted(step)
        if lane.trace.ended is None:
            assert sum(f.model == "target" for f in forwards) == 1
            if len(lane.trace.steps) > 1 and born:  # nothing is drafted for one last token
                assert of_draft == [2 if all_accepted else 1] + [1] * (len(born) - 1)
        statuses = [v.status for v in events(step, "Verdict")]
        all_accepted = bool(born) and "bonus" in statuses
        seen.add(all_accepted)
        if lane.trace.ended is None:
            assert lane.scorers["target"].used == len(ids) + lane.written - 1
        if lane.trace.ended is None and born:
            assert lane.scorers["draft"].used == len(ids) + lane.written - (2 if all_accepted else 1)
    assert seen == {True, False}


def test_the_draft_is_never_longer_than_what_may_be_written():
    for length in (1, 2, 5):
        trace = decode("speculative", PROMPTS[4], {"num_assistant_tokens": 8}, length)
        written = 0
        for step in trace.steps:
            assert len(drafted(step)) <= length - written - 1
            written += len(events(step, "Commit")[0].nodes)
        assert trace.output() == greedy(PROMPTS[4])[:length]
    one = decode("speculative", PROMPTS[4], {}, 1)
    assert one.costs.draft_forwards == 0 and one.costs.target_forwards == 1


def test_nothing_follows_an_end_of_text_token():
    ended = 0
    for seed in range(60):
        trace = Lane("speculative", [0], tables(frozenset({3})), SAMPLED, seed=seed, limits=Limits(12)).run()
        nodes, output = trace.nodes(), trace.output()
        ends = {n for n, (_, token) in nodes.items() if token == 3}
        assert not any(parent in ends for parent, _ in nodes.values())
        assert 3 not in output[:-1]
        ended += output[-1] == 3
    assert ended > 10


def test_a_script_forces_what_was_accepted():
    models = tables()
    parameters = {"num_assistant_tokens": 2, **SAMPLED}
    lane = Lane(
        "speculative", [0], models, parameters, limits=Limits(6), chooser=Script([1, 2, True, False, 4])
    )
    step = lane.advance()
    assert lane.trace.output() == [1, 4]
    assert [v.status for v in events(step, "Verdict")] == ["accepted", "rejected", "resampled"]


def test_verdicts_of_a_sampled_round_agree_with_their_draw():
    tried = 0
    for step in decode("speculative", PROMPTS[5], SAMPLED, 48, seed=3).steps:
        for v in events(step, "Verdict"):
            if v.status in ("accepted", "rejected"):
                tried += 1
                assert (v.u * v.q < v.p) == (v.status == "accepted")
    assert tried > 20


def test_lanes_with_one_seed_share_their_luck():
    """The streams are named by purpose and position, so a longer draft only adds draws."""
    used = {}

    class Watched(Random):
        def bernoulli(self, probability, tag):
            used[tag] = super().bernoulli(probability, tag).u
            return super().bernoulli(probability, tag)

    models = tables()
    for length in (1, 4):
        used_before = dict(used)
        Lane(
            "speculative",
            [0],
            models,
            {"num_assistant_tokens": length, **SAMPLED},
            limits=Limits(20),
            chooser=Watched(9),
        ).run()
        assert all(used[tag] == u for tag, u in used_before.items())


def test_the_badge_and_the_declaration():
    declared = Lane("speculative", [0], tables(), {}).strategy
    assert declared.badge({**declared.check({}), "temperature": 0.0}) == "lossless: equal to greedy"
    assert declared.badge({**declared.check({}), "temperature": 0.7}) == "exact in distribution"
    assert declared.needs == ("target", "draft") and "draft_rounds" in declared.views
    with pytest.raises(ValueError, match="num_assistant_tokens must be a whole number from 1 to 64"):
        declared.check({"num_assistant_tokens": 65})
