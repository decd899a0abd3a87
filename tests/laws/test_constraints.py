"""Laws of constraints: whatever strategy decodes, its text is what the constraint allows."""

import pytest

from decoders import registry
from decoders.constraints.kinds import constraint_of
from decoders.trace.events import Distribution
from tests.laws.running import CASES, start

ABLE = [case for case in CASES if "constraint" in {p.name for p in registry.get(case.split()[0]).parameters}]
# Of the two cases of one strategy the one that draws: it meets more of what is forbidden.
TAKES = [case for case in ABLE if f"{case} temperature=0.9" not in ABLE and not case.endswith("=0.0")]
TYPED = {
    "constraint": "regex",
    "constraint_text": r"[a-m ]+[.!]([n-z]{2,}[0-9]?)*",
    "constraint_white_space": "compact",
    "constraint_engine": "llguidance",
}
OWN = {"lattice": {"merge": "never"}}  # texts that meet would share one state
every_case = pytest.mark.parametrize("name", TAKES, scope="module")


@pytest.fixture(scope="module")
def models(name, target_for, tiny_model):
    return {"target": target_for(name.split()[0]), "draft": tiny_model("llama", 1)}


@pytest.fixture(scope="module")
def found(name, models):
    return start(name, models, new_tokens=16, parameters=TYPED | OWN.get(name, {})).run()


def states(model, tokens):
    """The states of the constraint along a text, None where it was left."""
    constraint = constraint_of(TYPED, model, model.eos)
    state = constraint.start()
    yield state
    for token in tokens:
        state = constraint.advance(state, token)
        yield state
        if state is None:
            return


@every_case
def test_the_text_is_allowed_as_far_as_it_goes(name, models, found):
    target, output = models["target"], found.output()
    ended = bool(output) and output[-1] in target.eos
    *_, last = states(target, output[:-1] if ended else output)
    assert last is not None and output
    if ended:
        assert constraint_of(TYPED, target, target.eos).may_end(last)


@every_case
def test_what_was_forbidden_is_recorded_where_the_target_was_asked(name, models, found):
    told = {e.node for s in found.steps for e in s.of(Distribution) if e.view == "target"}
    removed = {e.node: e for s in found.steps for e in s.of(Distribution) if e.view == "forbidden"}
    assert removed.keys() <= told and removed
    for event in removed.values():
        assert 0 <= event.rest <= 1 and 0 < event.among <= models["target"].engine.vocabulary
