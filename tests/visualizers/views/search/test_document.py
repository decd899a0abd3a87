"""The view of a document: flags where a passage may begin, P(end of text) down the sentences."""

import math

import pytest

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace.events import Propose
from decoders.trace.scores import Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.search.document import FIRST, FLAG, Document

WORDS = ["The cat sat. The dog ran. A bird flew.\n\nWho ran?\nAnswer:", " The", " dog", " A"]


def end(node: int, p: float, sentence: int, start: int, rank: int | None = None) -> Score:
    return Rank(node, "end of text", math.log(p), {"sentence": sentence, "from": start}, rank=rank)


def steps() -> list[list]:
    born = [Propose(1, 0, 1, -0.5, "target", 0), Propose(2, 1, 2, -0.4, "target", 0)]
    found = Rank(2, "sentence prefix", -0.434, {"sentence": 2.0}, rank=1)
    return [[*born, found], [end(2, 0.2, 2, 2), end(2, 0.8, 3, 2, 1)]]


def test_flags_curves_and_the_passage():
    marks, ops = fold(Document, steps(), [0], WORDS, passages=1)
    texts = [marks[f"s{row}"]["text"] for row in range(3)]
    assert texts == ["The cat sat.", "The dog ran.", "A bird flew."]
    flag = marks["f1"]
    assert (flag["x"], flag["y"], flag["text"]) == (FLAG, 1.5, "−0.4")
    assert [marks[f"e1.{row}"]["w"] for row in (1, 2)] == [0.18, 0.72]
    left = {round(marks[f"e1.{row}"]["x"] - marks[f"e1.{row}"]["w"] / 2, 2) for row in (1, 2)}
    assert left == {round(FIRST - 0.45, 2)}
    assert [marks[f"e1.{row}"]["state"] for row in (1, 2)] == ["prompt", "chosen"]
    assert [marks[f"s{row}"]["role"] for row in range(3)] == ["soft", "ink", "ink"]
    assert marks["heading"]["lead"] == "1 prefix"
    assert ops[0][-1]["say"] == "1 prefix, distinguished by 2 tokens; 0 ends read."


@pytest.fixture(scope="module")
def llama_tiny():
    return load("llama-tiny")


def test_a_real_run_has_a_flag_and_a_curve_for_each_passage(llama_tiny):
    prompt = "Mia has a dog. Sam is in the park. Anna likes soup.\n\nQuestion: Where is Sam?\nAnswer:"
    lane = Lane("cfic", llama_tiny.encode(prompt), {"target": llama_tiny}, {"passages": 2}, limits=Limits(40))
    trace = lane.run()
    view = Document(Header.of(trace))
    ops = [op for step in trace.steps for op in to_json(view.feed(step))]
    assert len(view.sentences) == 3 and len(view.flags) == 2 and len(view.curves) == 2
    assert sum(op.get("state") == "chosen" for op in ops) == 2
    assert len(of_kind({op["id"]: op for op in ops if "kind" in op}, "cell")) >= 4
