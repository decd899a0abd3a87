"""Where in a schema the beginning of a JSON text stands."""

import pytest

from decoders.constraints.places.schema_text import Schema
from decoders.constraints.places.syntax import Unread

TYPED = """{"type": "object", "properties": {
  "name": {"type": "string"}, "age": {"type": "integer"}, "pet": {"enum": ["cat", "cow", 3]},
  "more": {"type": "array", "items": {"$ref": "#/$defs/one"}}, "pair": {"prefixItems": [{"const": "a"}, true]}
}, "required": ["name", "pet"],
"$defs": {"one": {"anyOf":
  [{"type": "null"}, {"type": "object", "properties": {"q": {"type": "number"}}}]}}}"""


def marked(text: str) -> list[str]:
    """What of the schema is marked as coming next after a text."""
    return [TYPED[start:stop] for start, stop in Schema(TYPED).places(text)[0]]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{", ['"name"']),
        ('{ "na', ['"name"']),
        ('{"name"', ['"name": {"type": "string"}']),
        ('{"name": "a \\" {b', ['{"type": "string"}']),
        ('{"name": "ab"', ['"age"', '"pet"']),
        ('{"name": "ab", "age": 1', ['{"type": "integer"}']),
        ('{"name": "ab", "pet": "c', ['"cat"', '"cow"']),
        ('{"name": "ab", "pet": "co', ['"cow"']),
        ('{"name": "ab", "pet": 3, "m', ['"more"']),
        ('{"name": "ab", "pet": 3, "more": [nu', ['{"type": "null"}']),
        ('{"name": "ab", "pet": 3, "more": [null, {"q": 1', ['{"type": "number"}']),
        ('{"name": "ab", "pet": 3, "more": [], "pair": [', ['"a"']),
        ('{"name": "ab", "pet": 3}', []),
    ],
)
def test_names_values_references_and_alternatives(text, parts):
    assert marked(text) == parts


def test_the_part_around_is_the_member():
    awaited, around = Schema(TYPED).places('{"name": "x')
    assert [TYPED[start:stop] for start, stop in around] == ['"name": {"type": "string"}'] and awaited


@pytest.mark.parametrize("typed", ['{"a": }', "", '{"a": 1} 2', '{"a'])
def test_what_is_no_json_is_unread(typed):
    with pytest.raises(Unread, match="not valid JSON"):
        Schema(typed)
