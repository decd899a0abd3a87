"""Judge decoding: the dossier's worked numbers, the limits of its threshold, the distance that it tells,
which is right on average, and the head.
"""

import pytest
import torch

from decoders.chooser import Exhaustive, Script
from decoders.engine.tree import Tree
from decoders.heads import Judge, Taps, Target
from decoders.heads.scorers.judge import UNASKED
from decoders.lane import Lane, Limits
from decoders.logits.distributions import one_hot
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.interfaces import Draft, VerifierInput
from decoders.speculative.methods.judge import judged_acceptance
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Note, Verdict
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import Measure, Score, ScoreName
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds
from tests.helpers.stateful_tables import Says, StatedTable

TOKENS = 4


def tables(first: int = 1, chance=None) -> dict[str, TableModel]:
    target = StatedTable(random_table(first, TOKENS, 1.5), TOKENS)
    target.heads = {"judge": Says(chance)} if chance else {}
    return {"target": target, "draft": TableModel(random_table(first + 1, TOKENS, 1.5), TOKENS)}


def by_token(*said: float):
    """A judge that looks at the last token alone."""
    return lambda text: said[text[-1]]


def chain(right: list[float], likeliest: list[bool]) -> VerifierInput:
    """A drafted chain of tokens 0, with what the judge says of each, before a target that wants 0 or 1."""
    tree, draft, node = Tree([0]), Draft(0), 0
    for _ in right:
        child = tree.add(node, 0)
        draft.nodes.append(child)
        draft.children[node] = [child]
        node = child
    rows = torch.tensor([[1.0, 0.0] if one else [0.0, 1.0] for one in [*likeliest, True]])
    p = {n: one_hot(row[None])[0] for n, row in zip([0, *draft.nodes], rows.double(), strict=True)}
    states = dict(zip(draft.nodes, right, strict=True))
    return VerifierInput(draft, tree.tokens, p, Script([]), 0, states=states)


def test_either_test_is_enough():
    """The dossier's masks: ordinary 1, 0, 1, 1 and judge 0, 1, 0, 1 let all four pass."""
    judge = judged_acceptance(0.5, 0.0, float)
    right = [0.1, 0.9, 0.1, 0.9]
    verification = judge.verify(chain(right, [True, False, True, True]))
    assert verification.path == [1, 2, 3, 4] and verification.token == 0
    assert [test.watched for test in verification.tests] == [(ScoreName.JUDGED, said, 0.5) for said in right]
    assert verification.tests[1].reasons[-1] == Reason(Code.JUDGE, {"score": 0.9, "delta": 0.5})
    verification = judge.verify(chain([0.1, 0.5, 0.1, 0.9], [True, False, True, True]))
    assert verification.path == [1] and verification.token == 1
    assert verification.tests[1].reasons[-1] == Reason(Code.JUDGE, {"score": 0.5, "delta": 0.5})


@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 3}])
def test_with_delta_1_it_is_token_rejection_draw_for_draw(shape):
    """The judge is sure of everything, and its word never counts."""
    parameters = {"delta": 1.0, "num_assistant_tokens": 3, **shape}
    for seed in range(5):
        models = tables(seed, by_token(1.0, 1.0, 1.0, 1.0))
        found = Lane("judge", [0], models, parameters, seed, Limits(30)).run()
        del parameters["delta"]
        plain = Lane("speculative", [0], models, parameters, seed, Limits(30)).run()
        parameters["delta"] = 1.0
        assert found.output() == plain.output() and found.badge == "exact in distribution"
        assert found.costs.totals()["accepted"] == plain.costs.totals()["accepted"]
    exact = law_of_rounds(Exhaustive(), "judge", models, parameters, 3, 1)
    assert distance(exact, exact_distribution(models["target"], (0,), 3, shape_of(shape))) < 1e-12
    assert RECURSIVE_REJECTION.exact_for >= judged_acceptance(1.0, 1.0).exact_for


def test_with_delta_0_the_law_is_the_draft_s():
    models = tables(7, by_token(0.1, 0.2, 0.3, 0.4))
    parameters = {"delta": 0.0, "num_assistant_tokens": 2, "temperature": 1.0}
    found = law_of_rounds(Exhaustive(), "judge", models, parameters, 2)
    wanted = exact_distribution(models["draft"], (0,), 1)
    first = [sum(mass for said, mass in found.items() if said[0] == token) for token in range(TOKENS)]
    assert first == pytest.approx([wanted[token,] for token in range(TOKENS)], abs=1e-12)


def test_at_temperature_0_delta_1_is_greedy_and_less_keeps_what_the_judge_likes():
    for first in range(1, 7):
        models = tables(first, by_token(0.2, 0.9, 0.4, 0.6))
        greedy = Lane("greedy", [0], {"target": models["target"]}, limits=Limits(24)).run().output()
        found = Lane("judge", [0], models, {"delta": 1.0}, limits=Limits(24)).run()
        assert found.output() == greedy and found.badge == "lossless: equal to greedy"
        trace = Lane("judge", [0], models, {"delta": 0.5}, limits=Limits(24)).run()
        assert trace.badge == "relaxed"
        scores = {e.node: e.total for s in trace.steps for e in s.of(Measure) if e.name == ScoreName.JUDGED}
        verdicts = {v.node: v.status for s in trace.steps for v in s.of(Verdict) if v.node in scores}
        assert all(verdicts[n] == "accepted" for n, said in scores.items() if said > 0.5)


@pytest.mark.parametrize("delta", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_the_distance_that_is_told_is_the_law_s_on_average(delta):
    """Over all draws of a round with one guess: the mean of what is told, and total variation."""
    models = tables(5, by_token(0.2, 0.9, 0.4, 0.6))
    parameters = {"delta": delta, "num_assistant_tokens": 1, "temperature": 1.0}

    def told(chooser):
        lane = Lane("judge", [0], models, parameters, limits=Limits(2), chooser=chooser)
        step = lane.advance()
        lane.close()
        said = [e.total for e in step.of(Score) if e.name != ScoreName.JUDGED]
        return lane.trace.output()[0], sum(said)

    outcomes = Exhaustive().distribution(told)
    law = [sum(mass for (token, _), mass in outcomes.items() if token == t) for t in range(TOKENS)]
    wanted = exact_distribution(models["target"], (0,), 1)
    true = sum(abs(law[t] - wanted[t,]) for t in range(TOKENS)) / 2
    assert sum(said * mass for (_, said), mass in outcomes.items()) == pytest.approx(true, abs=1e-12)


def test_a_stricter_judge_keeps_no_more():
    kept = []
    for delta in (0.0, 0.3, 0.5, 0.8, 1.0):
        models = tables(3, by_token(0.2, 0.9, 0.4, 0.6))
        trace = Lane("judge", [0], models, {"delta": delta, "temperature": 1.0}, 1, Limits(80)).run()
        kept.append(trace.costs.totals()["accepted"] / len(trace.steps))
    assert kept == sorted(kept, reverse=True) and kept[0] > kept[-1]


def test_without_a_judge_the_lane_says_so_and_decodes_as_usual():
    models = tables(3)
    trace = Lane("judge", [0], models, {"temperature": 0.0}, limits=Limits(20)).run()
    greedy = Lane("greedy", [0], {"target": models["target"]}, limits=Limits(20)).run()
    assert trace.output() == greedy.output()
    assert "No judge comes with the project for the target 'table'" in trace.steps[0].of(Note)[0].text


def test_the_head_reads_the_target_s_state_after_the_guess():
    """On a real model: what is told at a guess is what the head says of a forward over the whole text."""
    models = {"target": tiny_models.make("llama"), "draft": tiny_models.make("llama", 1)}
    torch.manual_seed(0)
    head = models["target"].heads["judge"] = Judge(Target.of(models["target"].model)).eval()
    trace = Lane("judge", [40, 41, 42], models, {"delta": 0.4}, limits=Limits(20)).run()
    nodes = trace.nodes()
    for step in trace.steps:
        for score in (e for e in step.of(Measure) if e.name == ScoreName.JUDGED):
            text, node = [], score.node
            while node >= 3:
                text, node = [nodes[node][1], *text], nodes[node][0]
            out = models["target"].model(torch.tensor([[40, 41, 42, *text]]), output_hidden_states=True)
            said = float(head.scores(out.hidden_states[-1][0, -1]))
            assert score.total == pytest.approx(said, abs=1e-5) and score.limit == 0.4


def test_the_head_learns_right_from_wrong_where_wrong_is_rare():
    torch.manual_seed(0)
    head = Judge(Target.of(tiny_models.make("llama").model))
    hidden = torch.randn(16, 12, head.output.in_features)
    truth = (hidden[..., 0] > -1.2).long()
    truth[:, ::4] = UNASKED
    taps = Taps(torch.zeros(16, 12), hidden, {}, torch.zeros(16, 12, 1))
    learn = torch.optim.AdamW(head.parameters(), lr=3e-2)
    for _ in range(200):
        learn.zero_grad()
        head.loss(taps, truth).backward()
        learn.step()
    said = head.along(taps)
    assert said[truth == 1].mean() > 0.8 and said[truth == 0].mean() < 0.3
    by_hand = [-(said[truth == 1].log().mean()), -((1 - said[truth == 0]).log().mean())]
    assert float(head.loss(taps, truth)) == pytest.approx(sum(map(float, by_hand)) / 2, abs=1e-4)
