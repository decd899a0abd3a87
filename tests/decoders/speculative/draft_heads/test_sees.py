"""What guesses look at is on record, depth by depth; whether it is true is tested in heads/test_heads.py."""

from functools import partial

import pytest

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.speculative.drafters.sees import FIRST, SEVERAL
from decoders.speculative.self_draft.kangaroo import NONE, adapter_of
from decoders.speculative.self_draft.m2r2 import adapters_of
from decoders.trace.events import Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers import tiny_models

NAMES = sorted(name for name, one in strategies().items() if "sees" in one.views)
MODULES = {  # where a name is not its module's
    **{"eagle2": "eagle", "adaeagle": "eagle", "fragments": "medusa"},
    **{"blockwise_refined": "blockwise", "blockwise_rescored": "blockwise"},
}

BUILT = {  # what guesses for a target without adapters of its own
    "kangaroo": partial(adapter_of, {"adapter": NONE}),
    "m2r2": partial(adapters_of, {"adapters": NONE}),
}


@pytest.fixture(scope="module")
def target():
    """A tiny model with all heads of random weights."""
    return tiny_models.make("llama", seed=2)


@pytest.mark.parametrize("name", NAMES)
def test_each_depth_that_is_drafted_is_on_record_once(target, name, tiny_model):
    models = {"target": target, "draft": tiny_model("llama", 5)}
    models = {role: models[role] for role in strategies()[name].needs}
    trace = Lane(name, target.encode("the cat sat"), models, {}, limits=Limits(16)).run()
    module = BUILT[name](target) if name in BUILT else target.heads[MODULES.get(name, name)]
    told = [event for step in trace.steps for event in step.of(Measure) if event.name == "sees"]
    deepest = 0
    for step in trace.steps:
        pruned = {event.node for event in step.of(Verdict) if event.status == "pruned"}
        depth = {}  # of what was drafted in this round, and tested
        for event in step.of(Propose):
            if event.source != "target" and event.node not in pruned:
                depth[event.node] = depth.get(event.parent, 0) + 1
        deepest = max([deepest, *depth.values()])
    assert deepest and [event.level for event in told] == [f"depth {k}" for k in range(1, deepest + 1)]
    assert [event.total for event in told] == [module.reach(k) for k in range(1, deepest + 1)]
    states = {module.sees.states} | ({SEVERAL} if module.sees.layers else set())
    states |= {FIRST} if module.sees.first else set()
    assert all(set(event.parts) == states for event in told)


def test_the_root_of_pass_is_the_first_token_of_its_draft(target):
    trace = Lane("pass", target.encode("the cat sat"), {"target": target}, {}, limits=Limits(12)).run()
    step = next(step for step in trace.steps if any(e.name == "sees" for e in step.of(Measure)))
    first = next(event for event in step.of(Propose) if event.source == "target")
    assert {event.node for event in step.of(Measure) if event.name == "sees"} == {first.node}
