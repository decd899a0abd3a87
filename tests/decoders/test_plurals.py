"""Counts in the sentences of decoders and pictures: one of a thing is one of a thing."""

import re
from collections.abc import Iterator

import pytest

from decoders.lane import Lane, Limits
from decoders.models import load as load_model
from decoders.registry import strategies
from decoders.trace.events import Note
from decoders.trace.number_format import many, were
from decoders.trace.trace import Trace, load
from explorer.catalog import method_cards
from visualizers.registry import deltas
from visualizers.scene.view import Header

NAMED = ("number", "plan", "sample", "cluster", "lane", "text", "step", "round", "depth", "place")
NOT_A_NUMBER = "".join(f"(?<!{name} )" for name in NAMED)  # `plan 1 leads`
ONE = re.compile(rf"(?<![\d.,/−-]){NOT_A_NUMBER}\b1 (?:[a-z-]+ )?[a-z]{{2,}}[^s\W]s\b")


def strings(value: object) -> Iterator[str]:
    """All texts in what a view hands over."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from strings(one)


def test_many_and_were():
    assert [many(n, "step") for n in (0, 1, 1200)] == ["0 steps", "1 step", "1,200 steps"]
    assert many(1, "guess", "guesses") == "1 guess" and many(2, "guess", "guesses") == "2 guesses"
    assert [were(n, "text") for n in (1, 2)] == ["1 text was", "2 texts were"]
    assert (
        ONE.search("1 dead ends so far") and ONE.search("after 1 tokens") and not ONE.search("plan 1 leads")
    )


def slips(trace: Trace) -> set[str]:
    """Singulars that are plurals in what the views of a trace say."""
    header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
    views = strategies()[trace.strategy].views
    texts = (text for view in views for text in strings(deltas(view, header, trace.steps)))
    return {match.group() for text in texts for match in ONE.finditer(text)}


@pytest.mark.parametrize("name", ["coupling", "edu_plans", "eqspec", "topic_plan", "fsd"])
def test_no_view_counts_one_of_several(name):
    assert not slips(load(method_cards.file_of(name)))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("phi_decoding", {"max_steps": 1, "min_steps": 1}), ("pg_td", {"rollouts": 1}), ("lookahead", {})],
)
def test_no_note_counts_one_of_several(name, parameters):
    target = load_model("llama-tiny")
    trace = Lane(
        name, target.encode("Once upon a time"), {"target": target}, parameters, limits=Limits(6)
    ).run()
    notes = [event.text for step in trace.steps for event in step.events if isinstance(event, Note)]
    assert notes and not [note for note in notes if ONE.search(note)] and not slips(trace)
