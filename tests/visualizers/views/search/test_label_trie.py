"""The view of a label trie: the trie by hand, where a text stands in it, and labels that are used up."""

import math

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace.events import Commit, Distribution, Propose
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.label_trie import LabelTrie, trie_graph

LABELS = "red | red car | blue"
WORDS = ["p", " red", ", ", "red", " car", "<end>", "blue"]


def token(node: int, token: int, *offered: tuple[int, float]) -> list:
    """A committed token; what was on offer before it, after the mask."""
    top = [(t, math.log(p)) for t, p in offered]
    offer = [Distribution(node - 1, "processed", top, 0.0, 1.0)] if offered else []
    return [*offer, Propose(node, node - 1, token, -0.1, "target", 0), Commit([node], [-0.1])]


def looks(steps: list[list]) -> dict[str, tuple[str, str]]:
    """Prefix -> state and note of its mark."""
    marks, _ = fold(LabelTrie, steps, [0], WORDS, labels=LABELS, separator=", ")
    places = sorted(trie_graph(["red", "red car", "blue"]))
    return {
        place: (marks[f"n{at}"]["state"], marks[f"n{at}"].get("note", "")) for at, place in enumerate(places)
    }


def test_places_are_where_labels_part_or_end():
    graph = trie_graph(["red car", "red cat", "blue", "red"])
    assert set(graph) == {"", "blue", "red", "red ca", "red car", "red cat"}
    assert graph.edges["red", "red ca"]["text"] == " ca" and graph.nodes["red cat"]["depth"] == 3
    rows = {place: graph.nodes[place]["row"] for place in graph}
    assert rows["blue"] == 0 and rows["red ca"] == (rows["red car"] + rows["red cat"]) / 2


def test_where_the_text_stands_and_what_is_used():
    """The dossier's example: after `red, ` the root allows red only as the start of red car, and blue."""
    offered = ((1, 0.7), (6, 0.3))
    first = looks([token(1, 1, *offered)])
    assert first == {
        "": ("chosen", ""),
        "blue": ("prompt", ".30"),
        "red": ("chosen", ".70"),
        "red car": ("live", ""),
    }
    second = looks([token(1, 1, *offered), token(2, 2), token(3, 3)])
    assert second["red"] == ("chosen", "") and second["red car"] == ("live", "")
    assert second["blue"] == ("prompt", "")
    third = looks([token(1, 1), token(2, 2), token(3, 3), token(4, 4), token(5, 5)])
    assert third == {
        "": ("chosen", ""),
        "blue": ("live", ""),
        "red": ("pruned", ""),
        "red car": ("pruned", ""),
    }


def test_a_real_run_crosses_out_what_it_wrote():
    model, labels = load("llama-tiny"), "soup | a dog | a hat"
    lane = Lane(
        "trie_search",
        model.encode("Mia has a dog. Answer:"),
        {"target": model},
        {"labels": labels},
        limits=Limits(30),
    )
    trace = lane.run()
    words = [trace.vocabulary.get(t, b"").decode() for t in range(1 + max(trace.vocabulary))]
    steps = [step.events for step in trace.steps]
    marks, _ = fold(LabelTrie, steps, trace.prompt, words, labels=labels, separator=", ")
    written = trace.text().removesuffix("<|endoftext|>").strip().split(", ")
    assert sum("✕" in m["text"] for m in of_kind(marks, "node")) >= len(written) > 0
