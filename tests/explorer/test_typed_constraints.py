"""The texts of the benchmark of constraints, and what it says of a lane under one."""

from collections import Counter

from decoders.models import load
from explorer.benchmarks.constraints_family import lived
from explorer.benchmarks.typed_constraints import KINDS, OWN, typed


def test_texts_are_of_every_kind_and_the_same_each_time():
    texts = [typed(number) for number in range(200)]
    assert texts == [typed(number) for number in range(200)]
    assert Counter(kind for kind, _ in texts).keys() == {*KINDS, *OWN}
    assert len({text for _, text in texts}) > 150


def test_a_lane_under_a_text_works_or_gives_a_sentence():
    model = load("llama-tiny", "cpu")
    works = lived("regex", "[a-c]{3}", model)
    assert works["sentence"] == works["raised"] == "" and works["making"] > 0 and works["token"] > 0
    hangs = lived("json_schema", '{"type": "integer", "multipleOf": 1000003}', model)
    assert "llguidance took more than 1 second for it" in hangs["sentence"] and not hangs["raised"]
    assert "half of a character" in lived("words", "\ud800", model)["sentence"]
