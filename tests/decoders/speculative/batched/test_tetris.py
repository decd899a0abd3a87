"""TETRIS: the dossier's allocation, that it is exact where it says so, and the bias where it is not."""

import math

import pytest

from decoders import registry
from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.batched.tetris import DRAWN, LIKELIEST, allocate
from decoders.testing import distance, random_table, shape_of
from decoders.trace.scores import Measure
from tests.helpers.batch_results import accepted, alone, cousins, drafted, rounds, run, written

PROMPTS = ["Lily had a big wish.", "Once", "The old man looked at the sky", "aa aa aa"]


@pytest.fixture(scope="module")
def models():
    return cousins()


def summed(rows: list[tuple[float, ...]]) -> list[list[float]]:
    return [[sum(row[: j + 1]) for j in range(len(row))] for row in rows]


def test_the_dossiers_example():
    scores = summed([(-0.1, -0.2, -0.5, -0.7), (-0.5, -0.7, -0.8, -1.0), (-0.05, -0.15, -0.1, -0.3)])
    assert allocate(scores, 6) == [2, 1, 3]
    assert allocate(scores, 12) == [4, 4, 4] and allocate(scores, 0) == [0, 0, 0]
    for capacity in range(13):
        assert sum(allocate(scores, capacity)) == capacity


def test_of_equal_scores_the_shallow_ones_are_chosen():
    assert allocate([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], 4) == [2, 2]
    assert allocate([[-1.0, -1.0], [-1.0, -1.0], [-2.0, -2.0]], 3) == [2, 1, 0]


@pytest.mark.parametrize("scores", [DRAWN, LIKELIEST])
def test_every_text_is_greedys_and_the_budget_is_kept(models, scores):
    trace = run("tetris", models, PROMPTS, 14, {"scores": scores})
    assert list(written(trace).values()) == [alone(models, prompt, 14) for prompt in PROMPTS]
    lengths = set()
    for step, texts in zip(trace.steps, rounds(trace), strict=True):
        submitted = [sum(c.state != "pruned" for c in drafted(cells)) for cells in texts.values()]
        budget = [score.total for score in step.of(Measure) if score.name == "budget"]
        assert budget == ([3 * len(texts)] if len(texts) > 1 else [])
        assert sum(submitted) == min(3 * len(texts), sum(len(drafted(cells)) for cells in texts.values()))
        lengths |= set(submitted)
        for cells in texts.values():  # what is left out is the end of a chain
            states = [cell.state == "pruned" for cell in drafted(cells)]
            assert states == sorted(states)
    assert len(lengths) > 2


def test_with_room_for_all_nothing_is_left_out(models):
    trace = run("tetris", models, PROMPTS, 10, {"extra_tokens": 0})
    assert all(c.state != "pruned" for texts in rounds(trace) for cells in texts.values() for c in cells)
    assert sum(accepted(cells) for texts in rounds(trace) for cells in texts.values()) > 0


def law_of(text: int, models: dict, scores: str, length: int = 1) -> dict:
    parameters = {"prompts": "ba", "num_assistant_tokens": 1, "extra_tokens": 1, "temperature": 1.0}

    def once(chooser) -> tuple[int, ...]:
        lane = Lane("tetris", [0], models, parameters | {"scores": scores}, limits=Limits(3), chooser=chooser)
        lane.advance()
        lane.close()
        return tuple(written(lane.trace)[f"text {text}"][:length])

    return Exhaustive().distribution(once)


@pytest.mark.parametrize("text", [1, 2])
def test_ranked_by_the_likeliest_token_drawn_text_is_exact(text):
    models = {role: TableModel(random_table(seed, 2, 1.5), 2) for seed, role in ((1, "target"), (2, "draft"))}
    want = exact_distribution(models["target"], [[0], [1, 0]][text - 1], 1, shape_of({"temperature": 1.0}))
    assert distance(law_of(text, models, LIKELIEST), want) < 1e-12


def test_ranked_by_drawn_tokens_an_unlikely_one_is_said_too_seldom():
    """p = q = (.9, .1). A first guess of .1 is left out if the other text drafts two of .9 (.81 in all): the
    token is then drawn afresh, so b is said with .1 (1 - .81) + .1 .81 .1 = .0271.
    """
    same = {role: TableModel(lambda tokens: (0.9, 0.1), 2) for role in ("target", "draft")}
    said = law_of(1, same, DRAWN)
    assert said[(1,)] == pytest.approx(0.1 * 0.19 + 0.1 * 0.81 * 0.1)
    assert math.isclose(law_of(1, same, LIKELIEST)[(1,)], 0.1)
    badge = registry.get("tetris").badge
    shaped = registry.get("tetris").check({"temperature": 1.0})
    assert badge(shaped) == "relaxed" and badge(shaped | {"scores": LIKELIEST}) == "exact in distribution"
    assert badge(registry.get("tetris").check({})) == "lossless: equal to greedy"
