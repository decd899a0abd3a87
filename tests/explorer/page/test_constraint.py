"""What the page says of a constraint while it is typed."""

import pytest

from decoders.models import load
from explorer.page.constraint import check_constraint


@pytest.fixture(scope="module")
def target():
    return load("llama-tiny", "cpu")


def test_a_constraint_that_works_says_what_may_come_first(target):
    said = check_constraint({"constraint": "choices", "constraint_text": "yes|no"}, target)
    assert said["good"] and said["sentence"].startswith("Ready after ") and "“n”" in said["sentence"]
    assert check_constraint({}, target) == {"good": True, "sentence": "", "fault": ""}


@pytest.mark.parametrize(
    ("given", "sentence", "fault"),
    [
        ({"constraint": "json_schema", "constraint_text": '{\n"type" 1}'}, "not JSON", '"type" 1}\n       ▲'),
        ({"constraint": "regex", "constraint_text": ""}, "is empty", ""),
        ({"constraint": "poem"}, "constraint must be one of", ""),
        ({"constraint": "regex", "constraint_text": 5}, "must be a text", ""),
        ({"constraint": "lark", "constraint_text": "a: b", "constraint_engine": "x"}, "one of", ""),
    ],
)
def test_one_that_does_not_says_why_and_where(given, sentence, fault, target):
    said = check_constraint(given, target)
    assert not said["good"] and sentence in said["sentence"] and said["sentence"].endswith(".")
    assert said["fault"] == fault
