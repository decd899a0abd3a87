"""The JSON Schema of a trace, generated from the event classes, so that the published file matches the code.

`python -m decoders.trace.schema` writes assets/trace.schema.json; a test checks that it is up to date.
"""

import json
import types
import typing
from dataclasses import MISSING, fields
from typing import Any

from decoders.packages import assets
from decoders.trace import code, events, trace, trust
from decoders.trace.reasons import Code

PATH = assets() / "trace.schema.json"
MAX_STEPS = 100_000
MAX_EVENTS = 100_000  # in one step
PLACE = {"count": "integer", "at": "integer", "value": "number", "other": "number"}  # of a finding
OLD_SCORE = {
    "description": "A score of version 1; see docs/trace.md. It is read, never written.",
    "type": "object",
    "properties": {
        "type": {"const": "Score"},
        "node": {"type": "integer"},
        "name": {"type": "string"},
        "total": {"type": "number"},
        "parts": {"type": "object", "additionalProperties": {"type": "number"}},
        "rank": {"type": ["integer", "null"]},
        "level": {"type": ["string", "null"]},
    },
    "required": ["type", "node", "name", "total"],
    "additionalProperties": False,
}


def of_type(annotation: Any) -> dict:
    """The schema of a field's type annotation."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        kinds = [of_type(a) for a in arguments]
        return (
            {"type": [k["type"] for k in kinds]}
            if all(set(k) == {"type"} for k in kinds)
            else {"anyOf": kinds}
        )
    if origin is list:
        return {"type": "array", "items": of_type(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": of_type(arguments[1])}
    names = {int: "integer", float: "number", str: "string", bool: "boolean", types.NoneType: "null"}
    return {"type": names[annotation]}


def of_event(kind: type) -> dict:
    """The schema of one event class."""
    hints = typing.get_type_hints(kind)
    plain = {f.name: of_type(hints[f.name]) for f in fields(kind) if f.name != "why"}
    properties = {"type": {"const": kind.__name__}} | plain
    if kind is events.Verdict:
        properties["why"] = {"type": "array", "items": of_reason()}
        properties["status"] = {"enum": list(events.STATUSES)}
        properties["chance"] = properties["acceptance"]  # its name in older files: read, never written
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    needed = [n for n in needed if types.NoneType not in typing.get_args(hints[n])]
    return {
        "description": (kind.__doc__ or "").strip(),
        "type": "object",
        "properties": properties,
        "required": ["type", *needed],
        "additionalProperties": False,
    }


def of_reason() -> dict:
    """The schema of a reason: its code, and numbers that `reasons.NUMBERS` names."""
    return {
        "type": "object",
        "properties": {"code": {"enum": [code.value for code in Code]}},
        "required": ["code"],
        "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
    }


def of_trust() -> dict:
    """The schema of the report on an imported file."""
    places = {name: {"type": kind} for name, kind in PLACE.items()}
    finding = {
        "type": "object",
        "properties": {"fault": {"enum": [fault.value for fault in trust.Fault]}, **places},
        "required": ["fault", *PLACE],
        "additionalProperties": False,
    }
    hints = typing.get_type_hints(trust.Trust)
    plain = {f.name: of_type(hints[f.name]) for f in fields(trust.Trust) if f.name != "faults"}
    unset = {f.name for f in fields(trust.Trust) if types.NoneType in typing.get_args(hints[f.name])}
    return {
        "description": "What was checked of a file that another program wrote; see docs/trace.md.",
        "type": "object",
        "properties": plain
        | {
            "scale": {"enum": list(trust.SCALES)},
            "faults": {"type": "array", "items": finding, "maxItems": len(trust.Fault)},
        },
        "required": [name for name in (*plain, "faults") if name not in unset],
        "additionalProperties": False,
    }


def of_code() -> dict:
    """The schema of the code that ran."""
    text, whole = {"type": "string"}, {"type": "integer", "minimum": code.NOWHERE}
    function = {"name": text, "file": text, "first": whole, "source": text}
    parts = {
        "algorithm": text,
        "functions": listed(closed(function), code.MAX_FUNCTIONS),
        "places": listed(listed(listed(whole)), code.MAX_PLACES),
        "steps": listed(listed(whole)),
    }
    return {"description": "The strategy's own code; see docs/trace.md.", **closed(parts)}


def closed(properties: dict) -> dict:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(items: dict, most: int = MAX_EVENTS) -> dict:
    """A list of so many of these at most."""
    return {"type": "array", "maxItems": most, "items": items}


def schema() -> dict:
    """The whole schema (JSON Schema 2020-12)."""
    whole = {"type": "integer", "minimum": 0}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Decoding Explorer trace",
        "description": "One lane's record: header, steps of events, checkpoints, totals. See docs/trace.md.",
        "type": "object",
        "required": [
            "version",
            "strategy",
            "title",
            "parameters",
            "seed",
            "models",
            "prompt",
            "vocabulary",
            "badge",
            "steps",
            "checkpoints",
            "ended",
            "totals",
        ],
        "properties": {
            "version": {"enum": list(trace.READ)},
            "strategy": {"type": "string"},
            "title": {"type": "string"},
            "parameters": {"type": "object"},
            "model_defaults": {"type": "object"},
            "lacks": {"type": "array", "items": {"type": "string"}},
            "trust": of_trust(),
            "code": of_code(),
            "seed": {"type": "integer"},
            "models": {"type": "object", "additionalProperties": {"type": "string"}},
            "prompt": {"type": "array", "items": whole, "minItems": 1, "maxItems": 1_000_000},
            "vocabulary": {
                "type": "object",
                "propertyNames": {"pattern": "^[0-9]+$"},
                "additionalProperties": {"type": "string", "pattern": "^([0-9a-f]{2})*$"},
            },
            "badge": {"type": "string"},
            "steps": {
                "type": "array",
                "maxItems": MAX_STEPS,
                "items": {
                    "type": "object",
                    "required": ["index", "seconds", "events"],
                    "additionalProperties": False,
                    "properties": {
                        "index": whole,
                        "seconds": {"type": "number", "minimum": 0},
                        "slots": whole,
                        "events": {
                            "type": "array",
                            "maxItems": MAX_EVENTS,
                            "items": {"$ref": "#/$defs/Event"},
                        },
                    },
                },
            },
            "checkpoints": {
                "type": "array",
                "items": {"type": "object", "required": ["step", "nodes", "status"]},
            },
            "ended": {"type": ["string", "null"]},
            "totals": {"type": "object"},
        },
        "$defs": {name: of_event(kind) for name, kind in events.EVENTS.items()}
        | {"Score": OLD_SCORE}
        | {
            # Chosen by type, so that an error names the field and not nine alternatives.
            "Event": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": [*events.EVENTS, "Score"]}},
                "allOf": [
                    {
                        "if": {"properties": {"type": {"const": name}}},
                        "then": {"$ref": f"#/$defs/{name}"},
                    }
                    for name in (*events.EVENTS, "Score")
                ],
            }
        },
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(schema(), indent=1) + "\n", "utf-8")
