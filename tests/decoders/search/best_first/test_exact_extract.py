"""Exact-extract finds the cheapest of all spans, as brute force does, however it is cut into forwards."""

import math
import random

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.scores import Score
from tests.helpers.view_folding import fold
from visualizers.views.search.span_map import SpanMap

A, B, END, BREAK = range(4)
TOY = {BREAK: (0.55, 0.45, 0.0), A: (0.1, 0.5, 0.4), B: (0.3, 0.1, 0.6)}


def toy() -> TableModel:
    """The bigram model of the dossier; a line break comes before the answer."""
    return TableModel(lambda text: (*TOY[text[-1]], 0.0), 4, frozenset({END}), words=["a", "b", "<e>", "\n"])


def wild(seed: int) -> TableModel:
    """Four words, an end and a line break, with random conditional distributions."""

    def row(text: tuple[int, ...]) -> list[float]:
        luck = random.Random(repr((seed, text)))
        weights = [luck.random() ** 3 + 1e-3 for _ in range(6)]
        return [w / sum(weights) for w in weights]

    return TableModel(row, 6, frozenset({4}), words=["a", "b", "c", "d", "<e>", "\n"])


def run(model: TableModel, prompt: list[int], new_tokens: int = 16, **parameters) -> Lane:
    limits = Limits(max_new_tokens=new_tokens)
    lane = Lane("exact_extract", prompt, {"target": model}, parameters, limits=limits)
    lane.run()
    return lane


def spans(lane: Lane) -> dict[tuple[int, ...], float]:
    """Each scored span and its score."""
    found = {}
    for step in lane.trace.steps:
        for event in step.of(Score):
            if event.name == "span":
                path = lane.tree.path(event.node, above=lane.tree.trunk - 1)
                found[tuple(lane.tree.tokens[n] for n in path)] = event.total
    return found


def cost(model: TableModel, prompt: list[int], span: tuple[int, ...], end: int) -> float:
    rows = [model.table((*prompt, *span[:i]))[token] for i, token in enumerate((*span, end))]
    return -math.fsum(math.log(p) for p in rows)


def said(lane: Lane) -> str:
    return " ".join(note.text for step in lane.trace.steps for note in step.of(Note))


def test_the_example_of_the_dossier():
    lane = run(toy(), [A, B, A, BREAK])
    found = {span: math.exp(score) for span, score in spans(lane).items()}
    want = {(A,): 0.22, (A, B): 0.165, (A, B, A): 0.033, (B,): 0.27, (B, A): 0.054}
    assert found == pytest.approx(want)
    assert lane.trace.output() == [B, END]
    assert "ends with another span: cost 1.802 instead of 1.309" in said(lane)  # greedy says "ab"


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_equal_to_brute_force_on_random_passages(penalty):
    for seed in range(20):
        luck, model = random.Random(seed), wild(seed)
        passage = [luck.randrange(4) for _ in range(luck.randint(1, 12))]
        prompt = [*passage, 5, luck.randrange(4)]
        every = {tuple(passage[i:j]) for i in range(len(passage)) for j in range(i + 1, len(passage) + 1)}
        scores = {s: -cost(model, prompt, s, 4) / (len(s) + 1) ** penalty for s in every}
        lane = run(model, prompt, length_penalty=penalty)
        assert spans(lane) == pytest.approx(scores)
        assert tuple(lane.trace.output()) == (*max(scores, key=scores.get), 4)


def test_where_every_span_is_impossible_there_is_no_answer():
    """The model only ever says the line break."""
    model = TableModel(lambda text: (0.0, 0.0, 0.0, 1.0), 4, frozenset({END}), words=["a", "b", "<e>", "\n"])
    lane = run(model, [A, B, A, BREAK])
    assert lane.trace.output() == [] and lane.trace.ended.startswith("The model gives every span")
    judged = {e.node for s in lane.trace.steps for e in s.of(Verdict) if e.status == "pruned"}
    assert judged == {e.node for s in lane.trace.steps for e in s.of(Propose)}


def test_the_number_of_starts_in_a_forward_changes_nothing():
    prompt = [0, 1, 0, 1, 2, 0, 1, 3, 5]
    lanes = [run(wild(3), prompt, starts=n) for n in (1, 3, 16)]
    assert all(spans(lane) == pytest.approx(spans(lanes[0])) for lane in lanes)
    assert len({tuple(lane.trace.output()) for lane in lanes}) == 1


def test_equal_beginnings_share_their_nodes():
    lane = run(wild(0), [0, 0, 0, 0, 5])
    proposed = [(e.parent, e.token) for s in lane.trace.steps for e in s.of(Propose)]
    assert len(proposed) == len(set(proposed)) == 4 + 1  # the spans of a passage of one word, and the end
    first = next(e for e in lane.trace.steps[0].of(Forward))
    assert first.tokens == 1 + 4


def test_spans_are_no_longer_than_they_may_be():
    lane = run(wild(1), [0, 1, 2, 3, 0, 2, 5], max_span=2)
    assert {len(span) for span in spans(lane)} == {1, 2}
    short = run(wild(1), [0, 1, 2, 3, 0, 2, 5], new_tokens=3)
    assert max(len(span) for span in spans(short)) == 2 and len(short.trace.output()) <= 3


def test_a_model_that_cannot_end_a_span_decodes_greedily_and_says_so():
    model = TableModel(lambda text: [0.6, 0.4], 2)
    lane = run(model, [0, 1], 3)
    assert lane.trace.output() == [0, 0, 0] and "no span can end" in said(lane)


def test_on_a_real_model_every_score_is_that_of_the_span(tiny_model):
    model = tiny_model("llama")
    lane = run(model, model.encode("ab abc\nQ: x?"), max_span=3, starts=2)
    nodes = lane.trace.nodes()
    assert len(spans(lane)) > 5 and all(math.isfinite(score) for score in spans(lane).values())
    for span, score in list(spans(lane).items())[:6]:
        text = torch.tensor([[*lane.trace.prompt, *span]])
        logprobs = model.model(text).logits[0].log_softmax(-1)
        at = len(lane.trace.prompt) - 1
        want = sum(float(logprobs[at + i, t]) for i, t in enumerate(span))
        want += max(float(logprobs[-1, end]) for end in model.eos)
        assert score == pytest.approx(want, abs=1e-3)
    assert nodes and model.engine.cache.used == 0


def test_the_map_has_a_cell_for_every_span_and_marks_the_answer_and_the_way_of_greedy():
    lane = run(toy(), [A, B, A, BREAK])
    marks, _ = fold(SpanMap, [s.events for s in lane.trace.steps], lane.trace.prompt, ["a", "b", "<e>", "\n"])
    cells = {m["hover"][0]: m for m in marks.values() if m["kind"] == "cell"}
    assert set(cells) == {"a", "ab", "aba", "b", "ba"}
    assert [text for text, m in cells.items() if m["state"] == "chosen"] == ["b"]
    assert sorted(text for text, m in cells.items() if m["state"] == "accepted") == ["a", "ab"]
    assert cells["aba"]["x"] == 3 and cells["a"]["y"] == cells["aba"]["y"] != cells["b"]["y"]
    assert cells["b"]["weight"] > cells["a"]["weight"] > cells["ba"]["weight"] > cells["aba"]["weight"]
