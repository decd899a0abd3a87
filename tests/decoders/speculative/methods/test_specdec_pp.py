"""SpecDec++: the dossier's worked example, heads that say always or never, and a law that no length bends."""

import math

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import Acceptance, Taps, Target
from decoders.heads.scorers.acceptance import REFUSED_WEIGHT, UNASKED
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.methods.specdec_pp import HEAD, OWN, doubtful, head_of
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Note, Propose
from decoders.trace.scores import Measure, ScoreName
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds
from tests.helpers.stateful_tables import Says, StatedTable


def tables(first: int = 1, chance=None) -> dict[str, TableModel]:
    draft = StatedTable(random_table(first + 1, 3, 1.5), 3)
    draft.heads = {"acceptance": Says(chance)} if chance else {}
    return {"target": TableModel(random_table(first, 3, 1.5), 3), "draft": draft}


def drafted(step) -> list[int]:
    return [e.node for e in step.of(Propose) if e.source == "draft"]


def test_the_draft_ends_in_doubt_after_the_token_that_was_not_judged():
    """Predicted .9, .8, .7, stop .3: S is .9, .72, .504 after tokens 2, 3, 4; what is given are the
    acceptances of the tokens before.
    """
    enough, judged = doubtful(0.3, 2, 20), [0.9, 0.8, 0.7]
    assert [enough(judged[: t - 1]) for t in range(1, 5)] == [False, False, False, True]
    assert [doubtful(0.3, 2, 20)([1.0] * (t - 1)) for t in (1, 19, 20)] == [False, False, True]
    assert [doubtful(0.3, 2, 20)([0.0] * (t - 1)) for t in (1, 2)] == [False, True]
    assert [doubtful(0.3, 5, 20)([0.0] * (t - 1)) for t in (2, 4, 5)] == [False, False, True]


@pytest.mark.parametrize(("says", "least", "length"), [(1.0, 2, 7), (0.0, 2, 2), (0.0, 1, 2), (0.0, 5, 5)])
def test_a_head_that_always_or_never_believes_gives_the_longest_or_the_shortest_draft(says, least, length):
    """The first token is judged only once the second is there, so even the least draft has two, unless one
    is all that is allowed.
    """
    parameters = {"num_assistant_tokens": 7, "min_assistant_tokens": least}
    trace = Lane("specdec_pp", [0], tables(chance=lambda text: says), parameters, limits=Limits(40)).run()
    assert {len(drafted(step)) for step in trace.steps[:4]} == {length}


def test_s_is_told_at_each_token_that_was_judged_against_its_limit():
    """The dossier's .9, .8, .7: S .9, .72, .504, limit .7; the fourth token is submitted and not judged."""
    said = {2: 0.9, 3: 0.8, 4: 0.7}
    models = tables(chance=lambda text: said[len(text)])
    step = Lane("specdec_pp", [0], models, limits=Limits(40)).advance()
    scores = [e for e in step.of(Measure) if e.name == ScoreName.ALL_ACCEPTED]
    assert [e.total for e in scores] == pytest.approx([0.9, 0.72, 0.504])
    assert [e.parts["acceptance"] for e in scores] == [0.9, 0.8, 0.7]
    assert {e.limit for e in scores} == {1.0 - 0.3}
    assert drafted(step)[:3] == [e.node for e in scores] and len(drafted(step)) == 4


def test_a_higher_stop_gives_longer_drafts():
    found = []
    for stop in (0.0, 0.2, 0.5, 0.8, 1.0):
        trace = Lane("specdec_pp", [0], tables(), {"stop": stop, "predictor": OWN}, limits=Limits(60)).run()
        rounds = trace.costs.per_step_drafted
        found.append(sum(rounds) / len(rounds))
    assert found == sorted(found) and found[0] < found[-1]


@pytest.mark.parametrize("temperature", [1.0, 1.4])
def test_over_several_rounds_the_law_is_the_target_s(temperature):
    """The head looks at the drawn tokens, but never at the one that is offered next."""
    parameters = {"stop": 0.5, "num_assistant_tokens": 3, "min_assistant_tokens": 1}
    parameters["temperature"] = temperature
    models = tables(9, lambda text: (0.2, 0.9, 0.6)[text[-1]])
    found = law_of_rounds(Exhaustive(), "specdec_pp", models, parameters, 3)
    assert distance(found, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


def test_without_a_head_the_draft_s_own_probability_stands_in_and_the_lane_says_so():
    lane = Lane("specdec_pp", [0], tables(), {"predictor": HEAD}, limits=Limits(20))
    own = Lane("specdec_pp", [0], tables(), {"predictor": OWN}, limits=Limits(20)).run()
    found = lane.run()
    (note,) = found.steps[0].of(Note)
    assert "No acceptance head comes with the project for the draft 'table'" in note.text
    assert found.costs.per_step_drafted == own.costs.per_step_drafted and not own.steps[0].of(Note)


def test_a_head_serves_the_pair_that_it_was_trained_for_only():
    models = tables(chance=lambda text: 1.0)
    assert head_of(Lane("specdec_pp", [0], models)) is models["draft"].heads["acceptance"]
    models["target"].name = "another"
    assert head_of(Lane("specdec_pp", [0], models)) is None


# ---- the head --------------------------------------------------------------------------------------


def head_and_taps() -> tuple[Acceptance, Taps]:
    model = tiny_models.make("llama", seed=3).model
    torch.manual_seed(1)
    hidden = torch.randn(8, 12, model.config.hidden_size)
    return Acceptance(Target.of(model), against="x"), Taps(
        torch.zeros(8, 12), hidden, {}, torch.zeros(8, 12, 1)
    )


def test_the_loss_by_hand_and_what_is_not_asked():
    head, taps = head_and_taps()
    truth = torch.rand(8, 12)
    truth[:, ::3] = UNASKED
    total = weights = 0.0
    for row in range(8):
        for at in range(12):
            if (a := truth[row, at]) >= 0:
                x = taps.hidden[row, at]
                for _ in range(3):
                    x = x + torch.nn.functional.silu(head.blocks[0](x))
                said = head.output(x).log_softmax(-1)
                total = total - REFUSED_WEIGHT * (1 - a) * said[0] - a * said[1]
                weights += REFUSED_WEIGHT * (1 - a) + a
    torch.testing.assert_close(head.loss(taps, truth), total / weights)


def test_what_it_says_is_a_probability_although_refusals_are_weighted():
    """Tokens of two kinds, accepted with .9 and .3: it learns to say so."""
    head, taps = head_and_taps()
    likely = taps.hidden[..., 0] > 0
    truth = torch.where(likely, 0.9, 0.3)
    learn = torch.optim.AdamW(head.parameters(), lr=1e-2)
    for _ in range(150):
        learn.zero_grad()
        head.loss(taps, truth).backward()
        learn.step()
    said = head.along(taps)
    assert said[likely].mean().item() == pytest.approx(0.9, abs=0.05)
    assert said[~likely].mean().item() == pytest.approx(0.3, abs=0.05)
    assert math.isclose(float(head.scores(taps.hidden[0, 0])), float(said[0, 0]), abs_tol=1e-6)


def test_blocks_may_share_their_weights_or_not():
    target = Target.of(tiny_models.make("llama").model)
    shared, apart = (Acceptance(target, shared=one) for one in (True, False))
    assert len(shared.blocks) == 1 and len(apart.blocks) == 3
