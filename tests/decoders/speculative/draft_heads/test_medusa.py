"""Medusa: its thresholds, its trees, and what its heads may not know."""

import math

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.speculative.drafters.rank_trees import expected_tokens, topology_from_rank_accuracy
from decoders.speculative.drafters.trained_head import TrainedHead
from decoders.speculative.methods.typical_acceptance import threshold
from decoders.testing import random_table
from decoders.trace.events import Distribution, Verdict
from tests.helpers import tiny_models
from tests.helpers.headed_tables import HeadedTable
from tests.helpers.trace_readings import forwards

STORY = "Once upon a time there was a little girl named Lily. She"


@pytest.fixture(scope="module")
def llama_tiny():
    return load("llama-tiny")


@pytest.mark.parametrize(
    ("p", "expected"),
    [((0.6, 0.2, 0.1, 0.1), 0.09), ((0.97, 0.01, 0.01, 0.01), 0.09), ((0.001,) * 1000, 0.0003)],
)
def test_the_worked_thresholds_of_typical_acceptance(p, expected):
    assert threshold(torch.tensor(p, dtype=torch.float64), 0.09, 0.3) == pytest.approx(expected)


def test_typical_acceptance_with_epsilon_0_passes_all_that_is_possible():
    """Every drafted token that is tested passes, since the table gives every token some probability."""
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    asked = {"acceptance": "typical", "epsilon": 0.0, "tree": "chain", "temperature": 1.0}
    found = Lane("medusa", [0], {"target": target}, asked, limits=Limits(30)).run()
    statuses = [v.status for step in found.steps for v in step.of(Verdict)]
    assert statuses.count("accepted") > 10 and "rejected" not in statuses
    assert found.badge == "relaxed"


def test_all_branches_share_one_distribution_per_depth():
    """What the heads offer is recorded node by node: equal at equal depth, unlike EAGLE's."""
    target = tiny_models.make("llama", seed=2)
    asked = {"tree": "widths", "width": 2, "depth": 3, "nodes": 14}
    for strategy, equal in (("medusa", True), ("eagle", False)):
        found = Lane(strategy, target.encode("the cat"), {"target": target}, asked, limits=Limits(12)).run()
        step = max(found.steps, key=lambda one: len([d for d in one.of(Distribution) if d.view == "draft"]))
        offers = {
            d.node: tuple(token for token, _ in d.top) for d in step.of(Distribution) if d.view == "draft"
        }
        nodes = found.nodes()
        last = {
            offers[n]
            for n in offers
            if n in nodes and nodes[n][0] in offers and nodes[nodes[n][0]][0] in offers
        }
        assert len(last) == 1 if equal else len(last) > 1


def test_no_head_and_no_tree_leave_plain_greedy(llama_tiny, monkeypatch):
    """With nothing drafted every round is one token of the target's."""
    monkeypatch.setattr(TrainedHead, "is_ready", lambda self, lane: False)
    prompt = llama_tiny.encode(STORY)
    found = Lane("medusa", prompt, {"target": llama_tiny}, limits=Limits(20)).run()
    greedy = Lane("greedy", prompt, {"target": llama_tiny}, limits=Limits(20)).run()
    assert found.output() == greedy.output() and len(found.steps) == 20


def test_the_tree_promises_about_what_it_keeps(llama_tiny):
    """1 plus the sum of the paths' measured values, within a fifth on two stories: the promise takes ranks at
    different depths for independent, and few tokens are counted here.
    """
    accuracy = llama_tiny.heads["medusa"].rank_accuracy
    promised = expected_tokens(accuracy, topology_from_rank_accuracy(accuracy, 32))
    written = ran = 0
    for prompt in (STORY, "One day, Tom and his dog went to the park."):
        models, asked = {"target": llama_tiny}, {"nodes": 32}
        found = Lane("medusa", llama_tiny.encode(prompt), models, asked, limits=Limits(80)).run()
        written, ran = written + len(found.output()), ran + forwards(found)
    assert math.isclose(written / ran, promised, rel_tol=0.2)
