"""Decoding on demand: distance 0 decodes at every step, infinity once; an answer stands until the next."""

import random

import pytest
import torch
from torch.nn.functional import normalize

from explorer import experiments
from explorer.experiments.decoding_on_demand import (
    MEAN,
    PREDICTED,
    Stream,
    distance_for,
    needed,
    on_demand,
    predictor,
    standing,
    stream,
)

ANGLES = torch.tensor([0.0, 0.1, 0.2, 1.5, 1.6, 0.0])
VECTORS = torch.stack([ANGLES.cos(), ANGLES.sin()], 1)
ALIKE = (VECTORS @ VECTORS.T).clamp(max=1.0)
SEEN = Stream(list("aaabba"), list("aaabbc"), {MEAN: ALIKE})


@pytest.mark.parametrize("same", [ALIKE, torch.ones(6, 6)])
def test_no_distance_decodes_at_every_step_and_infinity_once(same):
    assert on_demand(same, 0.0) == [0, 1, 2, 3, 4, 5]
    assert on_demand(same, float("inf")) == [0]


def test_the_distance_is_that_to_the_last_decoded_step():
    assert on_demand(ALIKE, 0.5) == [0, 3, 5]
    assert on_demand(ALIKE, 0.015) == [0, 2, 3, 5]  # two small moves add up


def test_the_last_answer_stands():
    assert standing(SEEN, [0, 1, 2, 3, 4, 5]) == pytest.approx(5 / 6)
    assert standing(SEEN, [0, 3]) == pytest.approx(5 / 6)
    assert standing(SEEN, [0]) == pytest.approx(4 / 6)


def test_a_distance_is_found_for_a_share_of_the_steps():
    distance = distance_for([SEEN], MEAN, 0.5)
    assert on_demand(ALIKE, distance) == [0, 3, 5]


def test_a_stream_changes_one_fact_at_a_time_and_is_told_in_any_order():
    scenes = list(stream(random.Random(0), 40))
    facts = [set(scene.prompt.split("\n")[0].removesuffix(".").split(". ")) for scene in scenes]
    assert all(len(one) == 6 and len(one - other) <= 1 for one, other in zip(facts[1:], facts, strict=False))
    assert len({scene.answer for scene in scenes}) > 1
    assert all(f"is in {scene.answer}." in scene.prompt for scene in scenes)


def test_the_network_learns_the_answer_s_vector():
    torch.manual_seed(0)
    answers, right = normalize(torch.randn(4, 8), dim=-1), torch.arange(120) % 4
    states = torch.randn(4, 10)[right] + 0.1 * torch.randn(120, 10)
    network = predictor(states, right, answers, 0)
    with torch.no_grad():
        made = normalize(network(states), dim=-1)
    assert ((made @ answers.T).argmax(1) == right).float().mean() > 0.95


def test_the_fewest_calls_that_keep_most_of_the_answers():
    table = [["a", 1, 1.0, 0.5, 1.0], ["b", 2, 0.4, 0.48, 0.96], ["b", 3, 0.2, 0.3, 0.6]]
    assert needed(table, "b") == 0.4 and needed(table, "c") == 1.0


def test_the_stored_answer_decodes_always_without_a_distance():
    rows = {(row[0], row[1]): row for row in experiments.find_stored("decoding-on-demand")["rows"]}
    assert rows[PREDICTED, 0.0][2] == 1.0 and rows[PREDICTED, 0.0][3] == rows["every k-th step", 1][3]
    assert rows["every k-th step", 40][2] == 1 / 40
