"""Chips on hand-made events: states, numbers, rejected before their replacement, a live tail that changes."""

import math

from decoders.trace.events import Commit, Depend, Distribution, Propose, Step, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import vocabulary
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.text import SPACES, Text

WORDS = ["Once", " a", " big", " dog", "<img src=x onerror=alert(1)>", "."]


def chips(steps: list[list]) -> list[dict]:
    """The chips in order after all steps, the prompt's two left out; hidden ones are gone."""
    view = Text(Header([0, 1], vocabulary(*WORDS), {}))
    marks = {op["id"]: dict(op) for op in to_json(view.head().ops)}
    assert [m["state"] for m in marks.values()] == ["prompt", "prompt"]
    for index, events in enumerate(steps):
        for op in to_json(view.feed(Step(index, events))):
            if "kind" in op:
                assert op["id"] not in marks
                marks[op["id"]] = dict(op)
            elif "set" in op:
                marks[op["id"]].update(op["set"])
    return [m for m in list(marks.values())[2:] if not m.get("gone")]


def propose(node: int, parent: int, token: int, source: str = "target", logprob: float = -1.0) -> Propose:
    return Propose(node, parent, token, logprob, source)


def test_a_committed_token_carries_its_numbers():
    offered = Distribution(1, "target", [[2, -0.5]], 0.3, 1.25)
    (chip,) = chips([[offered, propose(2, 1, 2), Commit([2], [-0.5])]])
    assert (chip["text"], chip["state"], chip["logprob"], chip["entropy"]) == ("␣big", "chosen", -0.5, 1.25)
    assert chip["position"] == 1 and f"p .{round(100 * math.exp(-0.5))}" in chip["hover"][0]


def test_a_rejected_token_stands_before_the_one_that_replaced_it():
    found = chips(
        [
            [
                propose(2, 1, 2, "draft"),
                propose(3, 2, 4, "draft"),
                Verdict(2, "accepted"),
                Verdict(3, "rejected", 0.1, 0.4, 0.9),
                propose(4, 2, 3),
                Verdict(4, "resampled"),
                Commit([2, 4], [-0.1, -0.2]),
            ]
        ]
    )
    assert [(c["text"], c["state"]) for c in found] == [
        ("␣big", "accepted"),
        ("<img src=x onerror=alert(1)>", "rejected"),
        ("␣dog", "resampled"),
    ]


def test_the_live_tail_follows_the_best_beam_and_becomes_final_in_place():
    steps = [
        [
            propose(2, 1, 2),
            propose(3, 1, 3),
            Rank(2, "sum_logprob", -0.1, rank=1),
            Rank(3, "sum_logprob", -0.2, rank=2),
        ],
        [
            propose(4, 2, 5),
            propose(5, 3, 5),
            Rank(5, "sum_logprob", -0.3, rank=1),
            Rank(4, "sum_logprob", -0.4, rank=2),
        ],
        [Verdict(4, "pruned"), Commit([3, 5], [-0.2, -0.1])],
    ]
    assert [(c["text"], c["state"]) for c in chips(steps[:1])] == [("␣big", "live")]
    assert [(c["text"], c["state"]) for c in chips(steps[:2])] == [("␣dog", "live"), (".", "live")]
    assert [(c["text"], c["state"]) for c in chips(steps)] == [("␣dog", "chosen"), (".", "chosen")]


def test_a_commit_that_is_not_the_tail_replaces_it():
    steps = [
        [propose(2, 1, 2), propose(3, 1, 3), Rank(2, "sum_logprob", -0.1, rank=1)],
        [Verdict(2, "pruned"), Commit([3], [-0.2])],
    ]
    assert [(c["text"], c["state"]) for c in chips(steps)] == [("␣dog", "chosen")]


def test_what_a_round_copied_from_is_marked_while_that_round_is_shown():
    copied = [
        Depend(0, 2, 1.0, "match"),
        Depend(1, 3, 1.0, "copy"),
        propose(3, 2, 1, "prompt"),
        Commit([3], [-1.0]),
    ]
    view = Text(Header([0, 1], vocabulary(*WORDS), {}))
    spans, told = {}, []
    plain = [propose(2, 1, 0), Commit([2], [-1.0])]
    for index, events in enumerate((plain, copied, [propose(4, 3, 5), Commit([4], [-1.0])])):
        for op in to_json(view.feed(Step(index, events))):
            spans |= {op["id"]: op["set"]["span"]} if "span" in op.get("set", {}) else {}
        told.append({chip: span for chip, span in spans.items() if span})
    assert told == [{}, {"p0": "matched", "c1": "matched", "p1": "copied"}, {}]


def test_a_chip_knows_how_its_token_reads_in_the_text():
    """White space as it is, and a character whose bytes are split over tokens where it is complete."""
    words = dict(enumerate([b"Once", b" a", b"\n", "ä".encode()[:1], "ä".encode()[1:] + b"h", "ö".encode()]))
    view = Text(Header([0, 1], words, {}))

    def read(op: dict) -> str:
        return op.get("plain", op["text"].translate(SPACES))

    prompt = [read(op) for op in to_json(view.head().ops)]
    events = [propose(node, node - 1, node) for node in (2, 3, 4, 5)]
    ops = to_json(view.feed(Step(0, [*events, Commit([2, 3, 4, 5], [-0.1] * 4)])))
    texts = [read(op) for op in ops if op.get("kind") == "chip"]
    assert "".join(prompt + texts) == "Once a\näh" + "ö"
    assert [op["text"] for op in ops if op.get("kind") == "chip"][:2] == ["↵", "‹c3›"]
