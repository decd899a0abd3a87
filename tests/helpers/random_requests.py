"""Nonsense for every address of the app, made from a seed: valid requests with a part missing or of another
type, random JSON, and bytes that are not JSON. Also the rules for an acceptable answer.
"""

import copy
import http.client
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

API = "/gradio_api/"
ME, OTHER = "me" * 12, "you" * 8  # two sessions
# Where JSON is taken.
JSON_ADDRESSES = [
    *(f"{API}{way}/run" for way in ("run", "api", "call", "call/v2")),
    *(f"{API}{name}" for name in ("component_server", "queue/join", "cancel", "reset", "stream/x")),
    "/explorer-leave",
]
EITHER = {"cell", "text"}  # the others of what is asked for in one of two ways
VALUES = [
    None,
    True,
    False,
    float("nan"),
    float("inf"),
    1e400,
    10**400,
    2**70,
    1e300,
    -1,
    1.5,
    "",
    "x" * 20_000,
    "constructor",
    "__proto__",
    "~nosuch",
    "\ud800",
    "a\0b",
    "one\nTwo\x1b[31m",
    [],
    [[]],
    {},
    {"toString": {"a": [None]}},
]
BYTES = [
    b"",
    b" ",
    b"\xff\xfe\x00",
    b'{"data": "\xc3\x28"}',
    b"null",
    b"[]",
    b"3",
    b'"data"',
    b"NaN",
    b"{",
    b'{"data": [1, ',
    b"[" * 5000,
    b'{"a":' * 3000,
    b"1" * 6000,
    b'{"data": 1, "data": {}, "data": []}',
    b"\xef\xbb\xbf{}",
    '{"data": []}'.encode("utf-16"),
    b'{"data": "\\ud800"}',
    b'{"\\udfff": 1}',
    b'{"data": 1e999}',
    b"<html>",
]
MOST = 400  # characters of a sentence
TRACES = re.compile(r"Traceback|File \"|line \d+, in |<class|Error:|pydantic|https?://errors")


@dataclass
class Findings:
    """The faults of answers, by kind; `asked`: the number of requests sent."""

    asked: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def add(self, kind: str, what: str) -> None:
        self.wrong.append((kind, what[:300]))

    def told(self) -> str:
        """The number of faulty answers, and the first of them."""
        counts = Counter(kind for kind, _ in self.wrong)
        first = "\n".join(f"{kind}: {what}" for kind, what in self.wrong[:12])
        return f"{dict(counts)} of {self.asked} answers\n{first}"


class Client:
    """One connection, reopened when the server has closed it; a truncated answer has the status 0."""

    def __init__(self, address: str):
        self.host = urlsplit(address).netloc
        self.connection: http.client.HTTPConnection | None = None

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Status and body; of a stream its beginning."""
        if self.connection is not None:
            try:
                return self._send(method, path, body, headers)
            except (OSError, http.client.HTTPException):
                self.connection = None
        self.connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            return self._send(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self.connection = None
            return 0, repr(error).encode()

    def post(self, path: str, body: bytes | object, **headers: str) -> tuple[int, bytes]:
        """A POST of bytes, or of a value as JSON."""
        told = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", path, told, **{"Content-Type": "application/json", **headers})

    def _send(self, method: str, path: str, body: bytes | None, headers: dict) -> tuple[int, bytes]:
        self.connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in {**headers, "Content-Length": str(len(body or b""))}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders(body)
        answer = self.connection.getresponse()
        stream = "event-stream" in answer.headers.get("Content-Type", "")
        endless = stream and method == "GET"
        found = answer.read1(2000) if endless else answer.read()
        if endless:
            self.connection.close()
        return answer.status, found


def mutations(valid: object) -> Iterator[tuple[str, bool, object]]:
    """(what was done, whether the result certainly has a wrong type, the request), for every part of
    `valid`.
    """
    for path, old in list(parts(valid)):
        where = ".".join(map(str, path))
        if path and not isinstance(path[-1], int):
            yield f"{where} removed", False, changed(valid, path, remove=True)
        for new in VALUES:
            yield f"{where} = {ascii(new)[:40]}", wrong_kind(path, old, new), changed(valid, path, new)


def parts(value: object, path: tuple = ()) -> Iterator[tuple[tuple, object]]:
    """All paths in a value with the values at them, including itself."""
    yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from parts(one, (*path, key))


def changed(value: object, path: tuple, new: object = None, remove: bool = False) -> object:
    """`value` with another part at `path`, or without it; only the objects along the path are copied."""
    if not path:
        return new
    (key, *rest), made = path, copy.copy(value)
    if rest:
        made[key] = changed(value[key], tuple(rest), new, remove)
    elif remove:
        del made[key]
    else:
        made[key] = new
    return made


def wrong_kind(path: tuple, old: object, new: object) -> bool:
    """Whether no page could ever send `new` in place of `old`: numbers may be typed text, and values of
    parameters may have many types.
    """
    if old is None or new is None:
        return False
    if "parameters" in path[:-1]:
        return isinstance(new, dict)
    for kind in (dict, list, bool):
        if isinstance(old, kind):
            return not isinstance(new, kind)
    if isinstance(old, str):
        return not isinstance(new, str) or new == "\ud800"
    return isinstance(new, bool | list | dict)


def by_chance(chance: random.Random, depth: int = 0) -> object:
    """A random JSON value."""
    kind = chance.randrange(4 if depth < 4 else 2)
    if kind == 2:
        return [by_chance(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 3:
        names = ("data", "run", "lane", "lanes", "models", "device", "prompt", "session", "x", "")
        return {chance.choice(names): by_chance(chance, depth + 1) for _ in range(chance.randrange(5))}
    return chance.choice(VALUES)


def judge(
    findings: Findings, what: str, status: int, body: bytes, malformed: bool = False
) -> dict | list | None:
    """Notes the faults of an answer. Returns its JSON, if it contains any."""
    findings.asked += 1
    if status == 0:
        findings.add("cut", f"{what}: {body!r}")
    elif status >= 500:
        findings.add("500", f"{what}: {status} {body[:100]!r}")
    found = holds(body)
    if status >= 400:
        told = found.get("error", found.get("detail")) if isinstance(found, dict) else None
        check_sentence(findings, what, told)
    elif malformed:
        findings.add("taken", f"{what}: {status} {body[:100]!r}")
    elif isinstance(found, dict) and "error" in found:
        check_sentence(findings, what, found["error"])
    return found


def holds(body: bytes) -> dict | list | None:
    """The JSON in an answer; server functions answer with JSON text as JSON."""
    try:
        found = json.loads(body)
        return json.loads(found, parse_constant=no_number) if isinstance(found, str) else found
    except ValueError:
        return None


def no_number(text: str) -> None:
    """Raises: browsers cannot read NaN or Infinity."""
    raise AssertionError(f"an answer holds {text}, which is not JSON")


def check_sentence(findings: Findings, what: str, told: object) -> None:
    """Notes a refusal that says nothing, too much, or something that only programmers understand."""
    if not isinstance(told, str) or not told.strip():
        findings.add("silent", f"{what}: {told!r}")
    elif len(told) > MOST or "\n" in told or "\x1b" in told or TRACES.search(told):
        findings.add("no sentence", f"{what}: {told[:200]!r}")


def example(schema: dict, parts: dict, named: dict, name: str = "") -> object:
    """A value that follows a JSON schema. `named`: those of some fields; fields of EITHER are left out."""
    if "$ref" in schema:
        return example(parts[schema["$ref"].split("/")[-1]], parts, named, name)
    if name in named and schema.get("properties") is None:
        return named[name]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], parts, named, name)
    if "properties" in schema:
        inside = {key: part for key, part in schema["properties"].items() if key not in EITHER}
        return {key: example(part, parts, named, key) for key, part in inside.items()}
    if "enum" in schema:
        return schema["enum"][0]
    simple = {"integer": 1, "number": 1.0, "string": "a", "boolean": False, "object": {}}
    return (
        [example(schema["items"], parts, named)] if schema.get("type") == "array" else simple[schema["type"]]
    )
