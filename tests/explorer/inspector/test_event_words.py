"""Events in a few words, with their numbers."""

import pytest

from decoders.trace.events import EVENTS, Commit, Depend, Forward, Propose, Verdict
from decoders.trace.scores import Rank
from decoders.trace.trace import Trace, load
from explorer.catalog.method_cards import FOLDER
from explorer.inspector.event_words import Said, Wording


@pytest.fixture
def wording():
    made = Wording(Trace("mine", "Mine", {}, 0, {}, [0], {0: b"The", 1: b" cat", 2: b" dog"}))
    made.add(Propose(1, 0, 1, -0.5, "draft"))
    made.add(Propose(2, 1, 2, -0.5, "draft"))
    return made


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            Forward("draft", "draft", 1, 1, 0.0, 0.002),
            Said("forward of the draft", [("tokens", "1"), ("ms", "2.0")]),
        ),
        (Propose(1, 0, 1, 0.0, "draft"), Said("␣cat proposed by draft", [("q", "1.00")], 1)),
        (
            Verdict(1, "resampled", p=0.25, reason="It is the target's."),
            Said("␣cat written instead", [("p", ".250")], 1, "It is the target's."),
        ),
        (Commit([1, 2], [-1.0, None]), Said("2 tokens committed: ␣cat ␣dog", [("Σ log p", "−1")], 2)),
        (Depend(1, 2, 0.5, "attention"), Said("attention: ␣cat → ␣dog", [("weight", "0.5")])),
        (Depend(1, 2, 0.5, "causal"), Said("causal: position 1 → position 2", [("weight", "0.5")])),
        (
            Rank(2, "sum_logprob", -2.0, {}, rank=1),
            Said("␣dog: Σ log p", [("Σ log p", "−2"), ("rank", "1")], 2),
        ),
    ],
)
def test_an_event_in_words(wording, event, said):
    assert wording.said(event) == said


def test_what_one_line_records_in_a_row(wording):
    both = [Verdict(1, "pruned", reason="rank 3 of 4"), Verdict(2, "pruned", reason="rank 4 of 4")]
    assert wording.of_group(both) == Said("2 tokens pruned: ␣cat ␣dog", [], 2, "rank 3 of 4")
    assert wording.of_group(both[:1]) == wording.said(both[0])


def test_every_event_of_the_recorded_runs_has_words():
    seen = set()
    for file in sorted(FOLDER.glob("*.json.gz"))[::4]:
        trace = load(file)
        made = Wording(trace)
        for step in trace.steps:
            for event in step.events:
                made.add(event)
                said = made.said(event)
                assert said.what and "None" not in said.what and all(value for _, value in said.values)
                seen.add(type(event))
    assert len(seen) > len(EVENTS) / 2
