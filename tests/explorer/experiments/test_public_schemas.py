"""The public benchmark: which of its schemas are asked, and which of its instances count."""

import pytest

from explorer import experiments
from explorer.experiments import public_schemas


def test_odd_numbers_of_two_groups_that_are_small_with_instances_that_jsonschema_agrees_on(
    schemas, monkeypatch
):
    monkeypatch.setattr(public_schemas, "SMALL", 60)
    found = public_schemas.read(schemas)
    assert [(one["tier"], one["name"]) for one in found] == [("github-easy", "o31"), ("github-trivial", "o1")]
    assert all(one["valid"] == [True] and one["invalid"] == [1] for one in found)


def test_without_a_copy_it_says_what_it_needs(models, tmp_path):
    asked = experiments.find("public-schemas")
    with pytest.raises(ValueError, match="name a folder with a copy of its repository with --schemas FOLDER"):
        experiments.answered(asked, models)
    with pytest.raises(ValueError, match="is not a copy of JSONSchemaBench"):
        experiments.answered(asked, models, schemas=tmp_path)


def test_nothing_of_a_schema_is_stored():
    """The benchmark has no licence: its schemas are counted and named by number."""
    stored = experiments.find_stored("public-schemas")
    assert stored["schemas"] is True and "properties" not in str(stored)
    assert {row[1] for row in stored["rows"]} == {"github-trivial", "github-easy", "all"}
