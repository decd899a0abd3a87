"""DFlash and P-EAGLE as strategies: one draft forward a round, and lossless."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import exact_distribution
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Propose
from tests.helpers import tiny_models
from tests.helpers.headed_tables import HeadedTable
from tests.helpers.losslessness import law_of_rounds

both = pytest.mark.parametrize("name", ["dflash", "peagle"])


@both
def test_a_drawn_chain_leaves_the_targets_law(name):
    """The tokens of a chain are drawn one by one from distributions that know nothing of each other."""
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    parameters = {"temperature": 0.7, "tree": "chain", "depth": 3}
    law = law_of_rounds(Exhaustive(), name, {"target": target}, parameters, 4, rounds=2)
    assert distance(law, exact_distribution(target, (0,), 4, shape_of(parameters))) < 1e-12


@both
@pytest.mark.parametrize("tree", ["chain", "expand and rerank", "widths"])
def test_a_round_costs_one_draft_forward_however_deep(name, tree):
    target = tiny_models.make("llama", seed=2)
    parameters = {"temperature": 0.0, "tree": tree, "depth": 5, "nodes": 12}
    prompt = target.encode("the cat sat")
    trace = Lane(name, prompt, {"target": target}, parameters, limits=Limits(20)).run()
    assert trace.output() == tiny_models.generate(target, prompt, max_new_tokens=20)
    rounds = [step for step in trace.steps if any(e.source == "draft" for e in step.of(Propose))]
    ran = [[e for e in step.of(Forward) if e.model == "draft" and e.rows] for step in rounds]
    masks = target.heads[name].masks
    assert rounds and all(len(one) == 1 and one[0].tokens > masks > 3 for one in ran)


@both
def test_no_guess_is_deeper_than_the_block(name):
    target = tiny_models.make("llama", seed=2)
    parameters = {"temperature": 0.0, "depth": 16}
    lane = Lane(name, [5, 6, 7], {"target": target}, parameters, limits=Limits(30))
    trace = lane.run()
    drafted = [sum(e.source == "draft" for e in step.of(Propose)) for step in trace.steps]
    assert max(drafted) == target.heads[name].depth


@both
def test_a_lane_may_be_stopped_after_any_step(name):
    target = tiny_models.make("llama", seed=2)
    whole = Lane(name, [5, 6, 7], {"target": target}, {"temperature": 0.9}, limits=Limits(12)).run()
    for steps in range(1, len(whole.steps)):
        lane = Lane(name, [5, 6, 7], {"target": target}, {"temperature": 0.9}, limits=Limits(12))
        for _ in range(steps):
            lane.advance()
        lane.close()
        assert lane.trace.output() == whole.output()[: len(lane.trace.output())]
