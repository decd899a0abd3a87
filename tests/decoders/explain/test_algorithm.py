"""The steps of an algorithm: read from docstrings, and found for the events of every recorded run."""

from pathlib import Path

import pytest

from decoders.explain.algorithm import TELLING, all_selectors, selectors_of, step_of, steps_of
from decoders.packages import assets
from decoders.registry import get
from decoders.strategy_files import strategy_modules
from decoders.trace.events import EVENTS, Commit, Distribution, Event, Forward, Propose, Step, Verdict
from decoders.trace.scores import Measure
from decoders.trace.trace import load

DECODERS = Path(__file__).parents[3] / "decoders"
STEPS = {
    name: steps
    for name in strategy_modules()  # those of the package
    if (steps := steps_of(get(name).run.__doc__ or ""))
}
BEYOND = {  # what no recorded run has -> the parameters with which it occurs
    ("Cell", "relaxed"): "local_leap with a tau that some token reaches",
    ("Depend", "anchor"): "local_leap with a tau that some token reaches",
    ("Forward", "learn"): "osd after `every` rejections",
    ("Measure", "weight"): "awrs where a text's estimate is 0",
    ("Rank", "label"): "trie_search with answer: one label, exact",
    ("Rank", "word_error_rate"): "drax with num_candidates above 1",
}
FEWER_THAN_TWO = {  # strategies of whose recorded run at most one step is lit -> why
    "exspec": "which texts run together is decided before anything is recorded",
    "fsd": "its steps are two forms of one number",
    "momentum": "its first step counts a run, between two events",
    "monitor": "whether the monitor is active is in no event",
    "osd": "nothing is rejected in that run, so nothing is learned",
    "pearl": "both kinds of round record the same events",
    "specpv": "full and partial rounds record the same events, and no functions are recorded",
    "trie_search": "separators and answers with one label leave no event there",
    "universal": "its steps are three ways of which a parameter chooses one",
}
NO_ORDER = {  # draft and verify: rounds whose events lie in one step, or go back -> why
    "aggressive": "its first step says that the target checks, its third what is drafted",
    "bass": "its last step chooses the length of the next draft, with which a round begins",
    "clasp": "drafting and checking are one step",
    "easyspec": "drafting and checking are one step",
    "exspec": FEWER_THAN_TWO["exspec"],
    "lookahead": "the forward that checks also gives the next row, its first step",
    "osd": FEWER_THAN_TWO["osd"],
    "pearl": FEWER_THAN_TWO["pearl"],
    "specpv": FEWER_THAN_TWO["specpv"],
    "universal": FEWER_THAN_TWO["universal"],
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Step]]:
    """Name -> the steps of a strategy's recorded run."""
    folder = assets() / "examples" / "methods"
    return {name: load(folder / f"{name}.json.gz").steps for name in STEPS}


def lit(name: str, step: Step) -> list[int]:
    """The steps of the algorithm that the events of one step light, without those that light none."""
    found = (step_of(event, (), selectors_of(name)) for event in step.events)
    return [index for index in found if index is not None]


def test_steps_are_read_as_lines_of_prose():
    docstring = """One line.

    Before the list:

    1. First, over
       two lines.
    2. Second.

    After 3. it.
    """
    assert steps_of(docstring) == ["First, over two lines.", "Second."]
    assert steps_of("No steps.") == []


def test_the_first_step_with_a_matching_selector_is_taken():
    own, drafted = Propose(5, 4, 7, None, "target"), Propose(5, 4, 7, None, "draft")
    selectors = [["Propose:target+code:close"], ["Propose:target", "Measure"], ["Propose"]]
    assert step_of(own, ["run", "close"], selectors) == 0
    assert step_of(own, ["run"], selectors) == 1
    assert step_of(Measure(5, "any", 1.0), (), selectors) == 1
    assert step_of(drafted, ["close"], selectors) == 2
    assert step_of(Commit([5], [None]), ["close"], selectors) is None


def test_a_function_alone_selects_what_it_records():
    assert step_of(Commit([5], [None]), ["run", "close"], [[], ["code:close"]]) == 1


@pytest.mark.parametrize(
    ("event", "step"),
    [
        (Forward("draft", "draft", 1, 1, 0.0, 0.1), 1),
        (Propose(5, 4, 7, -1.0, "draft"), 1),
        (Forward("target", "verify", 4, 4, 0.0, 0.1), 2),
        (Distribution(4, "target", [], 1.0, 1.0), 2),
        (Verdict(5, "accepted"), 3),
        (Verdict(5, "rejected"), 3),
        (Distribution(4, "residual", [], 1.0, 1.0), 4),
        (Verdict(6, "resampled"), 4),
        (Verdict(6, "bonus"), 4),
    ],
)
def test_speculative_decoding_is_the_example(event, step):
    assert step_of(event, (), selectors_of("speculative")) == step - 1


def test_every_strategy_with_steps_has_selectors_for_each():
    rows = {name: len(selectors) for name, selectors in all_selectors().items()}
    assert rows == {name: len(steps) for name, steps in STEPS.items()}


def test_a_strategy_without_a_row_has_no_selectors():
    assert selectors_of("greedy") == [] == selectors_of("one of a person's own")


def conditions(name: str) -> set[tuple[str, str]]:
    """(class or "code", value) of each condition in a strategy's selectors."""
    selectors = (selector for step in selectors_of(name) for selector in step)
    parted = (one.partition(":") for selector in selectors for one in selector.split("+"))
    return {(kind, value) for kind, _, value in parted}


def told_apart(event: Event) -> set[tuple[str, str]]:
    """(class, value) for each field that tells an event apart from others of its class."""
    kind = type(event).__name__
    return {(kind, getattr(event, field)) for field in TELLING.get(kind, ())}


def test_selectors_name_what_events_have(recorded):
    events = (event for steps in recorded.values() for step in steps for event in step.events)
    known = set().union(*map(told_apart, events))
    assert not known & BEYOND.keys()
    known |= BEYOND.keys() | {(kind, "") for kind in EVENTS}
    for name in STEPS:
        assert {one for one in conditions(name) if one[0] != "code"} <= known, name


def test_selected_functions_are_defined_in_the_family_of_their_strategy():
    code: dict[str, str] = {}
    for name in STEPS:
        family = get(name).family
        if family not in code:
            files = sorted((DECODERS / family).rglob("*.py"))
            code[family] = "\n".join(file.read_text("utf-8") for file in files)
        for kind, value in conditions(name):
            assert kind != "code" or f"def {value}(" in code[family], (name, value)


def test_recorded_runs_light_at_least_two_steps(recorded):
    fewer = {
        name for name, steps in recorded.items() if len({i for step in steps for i in lit(name, step)}) < 2
    }
    assert fewer == FEWER_THAN_TWO.keys()


def test_a_round_of_draft_and_verify_ends_at_a_later_step_than_it_begins(recorded):
    drafting = [name for name in STEPS if get(name).family == "speculative"]
    backwards = {
        name
        for name in drafting
        for step in recorded[name]
        if any(forward.kind == "verify" for forward in step.of(Forward))
        and not ((found := lit(name, step)) and found[0] < found[-1])
    }
    assert backwards == NO_ORDER.keys()
