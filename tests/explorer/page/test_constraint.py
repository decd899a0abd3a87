"""What the page says of a constraint while it is typed."""

import pytest

from decoders.models import load
from explorer.page.constraint import judged


@pytest.fixture(scope="module")
def target():
    return load("llama-tiny", "cpu")


def test_a_constraint_that_works_says_what_may_come_first(target):
    said = judged({"constraint": "choices", "constraint_text": "yes|no"}, target)
    assert said["good"] and said["sentence"].startswith("Ready after ") and "“n”" in said["sentence"]
    assert judged({}, target) == {"good": True, "sentence": "", "line": None, "column": None}


@pytest.mark.parametrize(
    ("given", "sentence", "place"),
    [
        ({"constraint": "json_schema", "constraint_text": '{\n"type" 1}'}, "not JSON", (2, 8)),
        ({"constraint": "regex", "constraint_text": ""}, "is empty", (None, None)),
        ({"constraint": "poem"}, "constraint must be one of", (None, None)),
        ({"constraint": "regex", "constraint_text": 5}, "must be a text", (None, None)),
        ({"constraint": "lark", "constraint_text": "a: b", "constraint_engine": "x"}, "one of", (None, None)),
    ],
)
def test_one_that_does_not_says_why_and_where(given, sentence, place, target):
    said = judged(given, target)
    assert not said["good"] and sentence in said["sentence"] and said["sentence"].endswith(".")
    assert (said["line"], said["column"]) == place
