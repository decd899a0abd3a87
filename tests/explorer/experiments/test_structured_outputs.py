"""Structured outputs: the metrics of the study, and what two engines make of schemas."""

import json

import jsonschema
import pytest

from decoders.models import load
from decoders.packages import assets
from explorer.experiments import structured_outputs
from explorer.experiments.structured_outputs import Outcome, coverage, tried, valid

SCHEMAS = json.loads(structured_outputs.SCHEMAS.read_text("utf-8"))


def test_coverage_is_that_of_the_study():
    """Ten schemas, eight compile, six of these validate; a text of one that does not compile counts as no
    success here, whatever it is by luck.
    """
    found = [Outcome(taken=n < 8, validates=n < 6) for n in range(10)]
    assert coverage(found) == (0.8, 0.6, 0.75)
    assert coverage([Outcome()]) == (0.0, 0.0, None)


def test_the_instances_of_the_schemas_are_what_they_are_said_to_be():
    assert len(SCHEMAS) == 60 and len({one["tier"] for one in SCHEMAS}) == 5
    for one in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(one["schema"])
        assert one["valid"] and (one["invalid"] or not one["schema"])
        assert all(valid(one["schema"], json.dumps(value)) for value in one["valid"])
        assert not any(valid(one["schema"], json.dumps(value)) for value in one["invalid"])


def test_what_an_engine_makes_of_a_schema():
    models = {"target": load("llama-tiny", "cpu")}
    record = next(one for one in SCHEMAS if "pet" in json.dumps(one["schema"]))
    found = tried(models, record, "llguidance")
    assert found.taken and found.validates and not found.over and not found.under
    assert 0 < found.forced < found.tokens and len(found.token_us) > 10
    refused = next(one for one in SCHEMAS if one["schema"].get("uniqueItems"))
    found = tried(models, refused, "llguidance")
    assert not found.taken and "uniqueItems" in found.why


def test_an_engine_that_ignores_a_keyword_is_found_out():
    pytest.importorskip("xgrammar")
    unique = next(one for one in SCHEMAS if one["schema"].get("uniqueItems"))
    found = tried({"target": load("llama-tiny", "cpu")}, unique, "xgrammar")
    assert found.taken and found.under


def test_one_engine_is_compared_with_none():
    """xgrammar is not among what `pip install` brings."""
    answer = json.loads((assets() / "experiments" / "structured-outputs.json").read_text("utf-8"))
    alone = answer | {"rows": [row for row in answer["rows"] if row[0] == "llguidance"]}
    assert structured_outputs.stands(answer).compared
    assert structured_outputs.stands(alone).compared == []
