"""Trees, windows and lengths by measured times: a clock that only forwards move, and one that does not."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, TableScorer
from decoders.speculative import forward_times
from decoders.speculative.forward_times import forward_seconds
from decoders.testing import random_table
from decoders.trace.events import Forward, Note, Propose
from decoders.trace.scores import Measure

MILLISECONDS = {"draft": (2, 1), "target": (9, 3)}  # of a forward, and of each of its tokens
OPTIONS = {
    "pearl": {"num_assistant_tokens": 0, "concurrent": False},
    "duodecoding": {"budget": 0, "concurrent": False},
    "sequoia": {"costs": "measured"},
    "smartspec": {"costs": "measured", "prompts": ""},
}


@pytest.fixture
def slow(monkeypatch):
    """slow(draft=(ms, ms per token), target=...): the clock moves by this much at each forward of a model."""
    now, costs = [0.0], dict(MILLISECONDS)
    score = TableScorer.score

    def scored(self, nodes, hidden=False):
        fixed, each = costs[self.model.name]
        now[0] += (fixed + each * len(nodes)) / 1000
        return score(self, nodes, hidden)

    monkeypatch.setattr(TableScorer, "score", scored)
    monkeypatch.setattr(forward_times, "clock", lambda: now[0])
    return costs.update


def models() -> dict[str, TableModel]:
    laws = {"target": 1, "draft": 2}
    return {role: TableModel(random_table(seed, 4, 1.5), 4, name=role) for role, seed in laws.items()}


def run(strategy: str, parameters: dict | None = None, seed: int = 0, tokens: int = 24):
    chosen = OPTIONS[strategy] | (parameters or {})
    return Lane(strategy, [0, 1], models(), chosen, seed, Limits(tokens)).run()


def notes(trace) -> list[str]:
    return [note.text for step in trace.steps for note in step.of(Note)]


def text(trace) -> list[int]:
    return [
        trace.nodes()[n][1]
        for step in trace.steps
        for e in step.events
        if hasattr(e, "logprobs")
        for n in e.nodes
    ]


def test_a_forward_is_timed_by_its_tokens_and_counts_as_a_look(slow):
    lane = Lane("pearl", [0, 1], models(), {}, limits=Limits(4))
    assert forward_seconds(lane, "target", [1, 4]) == {1: pytest.approx(0.012), 4: pytest.approx(0.021)}
    told = [event for event in lane.events if isinstance(event, Forward)]
    assert {f.kind for f in told} == {"lens"} and {f.rows for f in told} == {1, 4}
    assert len(told) == 1 + 2 * forward_times.REPEATS
    lane.close()


@pytest.mark.parametrize(("target", "window"), [((9, 3), 4), ((2, 1), 1), ((900, 0), 32)])
def test_a_window_of_pearl_takes_the_draft_as_long_as_the_target(slow, target, window):
    slow({"target": target})
    found = run("pearl")
    told = notes(found)
    assert told[0].startswith("Measured here: a draft forward takes 3 ms, a target forward ")
    assert told[1] == f"Windows of {window} token{'s' * (window > 1)}."
    same = run("pearl", {"num_assistant_tokens": window})
    assert text(found) == text(same)
    proposed = [[len(step.of(Propose)) for step in trace.steps] for trace in (found, same)]
    assert proposed[0] == proposed[1]


def test_a_budget_of_duodecoding_has_many_divisors(slow):
    slow({"target": (30, 3)})  # eleven tokens of the draft
    found = run("duodecoding")
    assert notes(found)[1] == "A budget of 12 tokens per round."
    assert text(found) == text(run("duodecoding", {"budget": 12}))


@pytest.mark.parametrize(
    ("draft", "each", "wanted"), [((0, 0), 0, 16), ((30, 0), 0, 0), ((0, 0), 3, None)], ids=str
)
def test_the_form_of_sequoia_follows_what_forwards_take(slow, draft, each, wanted):
    """Free drafts and nodes: all of the budget. A draft as dear as the target: none of it. Costly nodes: as
    many as for the same costs given by hand.
    """
    slow({"draft": draft, "target": (9, each)})
    found = run("sequoia")
    (chosen,) = [n for n in notes(found) if n.startswith("A shape of ")]
    cost = {"costs": "assumed", "node_cost": each / (9 + each), "draft_cost": 0.0}
    by_hand = run("sequoia", cost) if wanted is None else None
    assert chosen == notes(by_hand)[0] if by_hand else chosen.startswith(f"A shape of {wanted} nodes")
    assert "over 1, " in notes(found)[0] and "over 17 tokens." in notes(found)[0]


def test_smartspec_drafts_as_long_as_it_pays_on_this_machine(slow):
    lengths = {}
    for name, costs in {"cheap": ((0, 0), (90, 0)), "dear": ((500, 0), (9, 3))}.items():
        slow(dict(zip(("draft", "target"), costs, strict=True)))
        found = run("smartspec")
        told = [s.total for step in found.steps for s in step.of(Measure) if s.name == "draft length"]
        lengths[name] = told[0]
        assert notes(found)[0].startswith("Measured here: a target forward takes ")
    assert lengths == {"cheap": 8, "dear": 0}


@pytest.mark.parametrize("strategy", OPTIONS)
def test_the_clock_never_changes_greedy_text(slow, strategy):
    plain = Lane("greedy", [0, 1], {"target": models()["target"]}, {}, limits=Limits(24)).run()
    for target in ((1, 0), (9, 3), (300, 0)):
        slow({"target": target})
        assert text(run(strategy)) == text(plain)


def test_the_clock_never_changes_what_duodecoding_draws(slow):
    """Its drafts are not drawn; those of the other three are."""
    found = []
    for target in ((1, 0), (9, 3), (300, 0)):
        slow({"target": target})
        found.append(text(run("duodecoding", {"temperature": 1.0}, seed=3)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("strategy", ["sequoia", "smartspec", "pearl", "duodecoding"])
def test_without_being_asked_nothing_is_timed(slow, strategy):
    lane = Lane(strategy, [0, 1], models(), {}, limits=Limits(8))
    found = lane.run()
    assert not any(note.startswith("Measured") for note in notes(found))
    assert not any(f.kind == "lens" for step in found.steps for f in step.of(Forward))
