"""Checks whether a trace follows its schema, twenty times as fast as a general validator.

Covers the few keywords of JSON Schema that `decoders.trace.schema` uses; any other is an error. What fails
here may still be valid (1.0 is an integer in JSON Schema), so the general validator then decides.
"""

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], bool]
TYPES: dict[str, Check] = {
    "integer": lambda v: type(v) is int,
    "number": lambda v: type(v) is int or type(v) is float,
    "string": lambda v: type(v) is str,
    "boolean": lambda v: type(v) is bool,
    "null": lambda v: v is None,
    "array": lambda v: type(v) is list,
    "object": lambda v: type(v) is dict,
}
WORDS = {"type", "const", "enum", "anyOf", "items", "properties", "required", "additionalProperties"}
WORDS |= {"minimum", "minItems", "maxItems", "pattern", "propertyNames"}


def of_trace(schema: dict) -> Check:
    """A function that tells whether any value follows the trace's schema."""
    head, fit = of_head(schema), of_events(schema)

    def fits(record: dict) -> bool:
        try:
            return head(record) and fit(record["steps"])
        except (TypeError, KeyError):  # not shaped like a trace at all
            return False

    return fits


def of_head(schema: dict) -> Check:
    """A function that tells whether all of a trace but its events follows the trace's schema."""
    properties = dict(schema["properties"])
    step = properties["steps"]["items"]
    bare = {**step, "properties": {**step["properties"], "events": {"type": "array"}}}
    properties["steps"] = {**properties["steps"], "items": bare}
    return compiled({name: schema[name] for name in ("type", "required")} | {"properties": properties})


def of_events(schema: dict) -> Callable[[list[dict]], bool]:
    """A function that tells whether every event of the steps of a trace follows the definition of its type in
    the trace's schema.
    """
    checks = {name: compiled(part) for name, part in schema["$defs"].items() if name != "Event"}
    max_events = schema["properties"]["steps"]["items"]["properties"]["events"]["maxItems"]
    return lambda steps: events_fit(steps, checks, max_events)


def events_fit(steps: list[dict], checks: dict[str, Check], max_events: int) -> bool:
    """Whether every event of `steps` passes the check of its type."""
    try:
        lists = [step["events"] for step in steps]
        return all(
            type(events) is list and len(events) <= max_events and all(checks[e["type"]](e) for e in events)
            for events in lists
        )
    except (KeyError, TypeError):  # an unknown type, or not an event
        return False


def compiled(schema: dict) -> Check:
    """A function that tells whether a value follows `schema`. Raises ValueError for an unknown keyword."""
    if unknown := set(schema) - WORDS - {"description"}:
        raise ValueError(f"This check does not know {', '.join(sorted(unknown))}.")
    checks: list[Check] = []
    if "const" in schema:
        only = schema["const"]
        checks.append(lambda value: value == only and type(value) is type(only))
    if "enum" in schema:
        among = schema["enum"]
        checks.append(lambda value: value in among)
    if "anyOf" in schema:
        choices = [compiled(choice) for choice in schema["anyOf"]]
        checks.append(lambda value: any(choice(value) for choice in choices))
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        types = [TYPES[name] for name in names]
        checks.append(types[0] if len(types) == 1 else lambda value: any(kind(value) for kind in types))
    if "minimum" in schema:
        low = schema["minimum"]
        checks.append(lambda value: value >= low)
    if "minItems" in schema:
        least = schema["minItems"]
        checks.append(lambda value: len(value) >= least)
    if "maxItems" in schema:
        most = schema["maxItems"]
        checks.append(lambda value: len(value) <= most)
    if "pattern" in schema:
        search = re.compile(schema["pattern"]).search
        checks.append(lambda value: search(value) is not None)
    if "items" in schema:
        item = compiled(schema["items"])
        checks.append(lambda value: all(map(item, value)))
    if schema.get("type") == "object":
        checks.append(of_object(schema))
    return checks[0] if len(checks) == 1 else lambda value: all(check(value) for check in checks)


def of_object(schema: dict) -> Check:
    """The check of an object's fields."""
    fields = {name: compiled(part) for name, part in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    others = schema.get("additionalProperties", True)
    other: Check = compiled(others) if isinstance(others, dict) else lambda value: others
    named: Check = compiled(schema["propertyNames"]) if "propertyNames" in schema else lambda name: True

    def check(value: dict) -> bool:
        return (
            all(name in value for name in required)
            and all(map(named, value))
            and all(fields.get(name, other)(part) for name, part in value.items())
        )

    return check
