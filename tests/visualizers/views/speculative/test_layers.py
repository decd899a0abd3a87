"""The layers view: a column a token, a box for each layer that ran, coloured by what became of the token."""

import pytest

from decoders.engine.layers import Layers as LayerSet
from decoders.trace.events import Commit, Forward, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.draft_layers import DraftLayers
from visualizers.views.speculative.layers import Layers

WORDS = ["Once", " upon", " a", " the", "<b>"]


def ran(kind: str, scope: str | None = None, share: float = 1.0, model: str = "target") -> Forward:
    return Forward(model, kind, 1, 1, 0.0, 0.1, scope, share=share)


def steps() -> list[list]:
    """A prompt read, then a round with two guesses, one of them from two streams."""
    prompt = [ran("prefill"), Propose(2, 1, 2, -0.1, "target"), Commit([2], [-0.1])]
    drafted = [
        ran("draft", "layers 1-2 of 4", 0.5),
        ran("draft", "fast stream through layers 1-2 of 4", 0.5),
        Propose(3, 2, 3, -0.2, "draft"),
        ran("draft", "attention 1, 3 and MLP 1-2 of 4 layers", 0.5),
        Propose(4, 3, 4, -0.2, "draft"),
        ran("lens"),
        ran("verify", "layers 3-4 of 4", 0.5),
        Verdict(3, "accepted"),
        Verdict(4, "rejected"),
        Propose(5, 3, 2, -0.3, "target"),
        Verdict(5, "resampled"),
        Commit([3, 5], [-0.2, -0.3]),
    ]
    return [prompt, drafted]


def boxes(marks: dict, column: int) -> list[tuple]:
    found = [mark for key, mark in marks.items() if key.startswith(f"b{column}.")]
    return [(box["y"] - box["h"] / 2, box["y"] + box["h"] / 2, box["state"], box["fill"]) for box in found]


def test_what_ran_for_each_token_is_a_column_and_the_prompt_s_waits_for_the_number_of_layers():
    marks, ops = fold(Layers, steps(), [0, 1], WORDS)
    assert not any(op.get("id", "").startswith("b") for op in ops[0]) and marks["layers"]["y0"] == 4
    assert [top for _, top, *_ in boxes(marks, 1)] == [1, 2, 3, 4]
    assert boxes(marks, 2) == [
        (0, 1, "accepted", "filled"),
        (1, 2, "accepted", "filled"),
        (0, 1, "accepted", "outline"),
        (1, 2, "accepted", "outline"),
    ]
    assert boxes(marks, 3) == [
        (0, 1, "rejected", "filled"),
        (1.5, 2, "rejected", "filled"),
        (2, 2.5, "rejected", "filled"),
    ]
    assert [box[:2] for box in boxes(marks, 4)] == [(2, 3), (3, 4)]
    assert [marks[f"t{x}"]["text"] for x in (1, 2, 3, 4)] == ["␣a", "␣the", "<b>", "␣a"]
    assert (
        marks["heading"]["lead"] == "1.00 forwards of the whole model per token"
    )  # 1 + 4 halves, three tokens
    assert marks["heading"]["heading"] == "; a drafted token ran 75 % of its blocks."
    assert len(of_kind(marks, "guide")) == 1


def test_choices_of_layers_stand_below_and_what_is_used_is_drawn_on():
    tried = [
        [ran("plan", "layers 1 of 2", 0.5), Measure(2, "matched", 0.5, level="adopted")],
        [ran("plan", "layers 2 of 2", 0.5), Measure(2, "matched", 0.25, level="not adopted")],
        [ran("plan", "layers 2 of 2", 0.5), Measure(2, "matched", 0.75, level="adopted")],
    ]
    marks, _ = fold(Layers, tried, [0, 1], WORDS)
    dots = [(mark["x"], mark["y"], mark["glyph"]) for mark in of_kind(marks, "symbol")]
    assert dots == [(1, 0.5, "dot"), (2, 0.25, "ring"), (3, 0.75, "dot")]
    lines = sorted(mark["points"] for mark in of_kind(marks, "path"))
    assert lines == [[[1, 0.5], [2, 0.5]], [[2, 0.5], [3, 0.5], [3, 0.75]]]
    assert {mark["state"] for key, mark in marks.items() if key.startswith("b")} == {"live"}


@pytest.mark.parametrize(
    "layers",
    [
        LayerSet.first(3, 12),
        LayerSet.only([0, 2, 3, 11], 12),
        LayerSet.without([1], [2, 3], 5),
        LayerSet.grouped(4, 12),
        LayerSet.without([0, 1], [0], 2),
        LayerSet.only([], 4),
    ],
)
def test_a_scope_is_read_as_it_was_written(layers):
    assert LayerSet.read(str(layers)) == layers == LayerSet.read(f"fast stream through {layers}")


@pytest.mark.parametrize("scope", ["40 of 52 places", "7 tokens in place of the prompt's 12", "every expert"])
def test_other_scopes_tell_of_no_layers(scope):
    assert LayerSet.read(scope) is None


def test_a_draft_s_layers_are_drawn_alone_and_catching_up_is_outlined():
    """The second token runs its first layer, then the second one together with the token in front."""
    waits = Forward("draft", "draft", 2, 1, 0.0, 0.1, "with 1 earlier, layers 2 of 3", share=1 / 3)
    first = Forward("draft", "draft", 1, 1, 0.0, 0.1, "layers 1 of 3", share=1 / 3)
    guesses = [Propose(1, 0, 2, -0.1, "draft"), Propose(2, 1, 3, -0.1, "draft")]
    events = [first, guesses[0], first, waits, guesses[1], ran("verify", None, 1.0)]
    marks, _ = fold(DraftLayers, [events], [0, 1, 2], WORDS)
    assert marks["layers"]["y0"] == 3 and {m["x"] for m in of_kind(marks, "cell") if "node" in m} == {1, 2}
    fills = {key: mark["fill"] for key, mark in marks.items() if key.startswith("b")}
    assert fills["b2.1.0"] == "outline" and "b3.0.0" not in fills


def test_a_level_of_a_tree_is_one_column_with_what_was_accepted_of_it():
    """Two children were drafted by one forward; the second passed, so the column has its state and token."""
    first = Forward("draft", "draft", 1, 1, 0.0, 0.1, "layers 1 of 3", share=1 / 3)
    guesses = [Propose(1, 0, 2, -0.1, "draft"), Propose(2, 0, 3, -0.1, "draft")]
    verdicts = [Verdict(1, "rejected"), Verdict(2, "accepted")]
    marks, _ = fold(DraftLayers, [[first, *guesses, *verdicts]], [0, 1, 2], WORDS)
    (token,) = [mark for mark in of_kind(marks, "cell") if "node" in mark]
    assert token["node"] == 2 and marks["b1.0.0"]["state"] == "accepted"
    assert "and 1 beside it" in token["hover"][1]
