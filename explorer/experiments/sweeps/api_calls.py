"""Does a call that looks right exist?

A small API has forty endpoints, and each has a schema for its arguments. The target, which has never seen the
API, reads three examples and a request and writes the call, freely and under one constraint made from the
list of endpoints and their schemas. Counted are calls that exist and whose arguments validate, calls that are
right, and calls that API Pack's metric counts as right: a ratio of matching characters (difflib) above .9.
The metric is also computed for every pair of different endpoints of the API.
"""

import difflib
import json
import random
from dataclasses import dataclass
from itertools import permutations

import jsonschema

from explorer.experiments import Models, Result
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.reading import Row, percent, rows_of
from explorer.experiments.sweep import Setting, Sweep, concluded, swept

PAPERS = ("api-pack",)
NOUNS = {"users": "user", "orders": "order", "offers": "offer", "pets": "pet", "cities": "city"}
VERBS = {
    "GET /{}": "list all {}",
    "POST /{}": "add one of the {}",
    "GET /{}/count": "count the {}",
    "GET /{}/{{id}}": "show {} number N",
    "PUT /{}/{{id}}": "change {} number N",
    "DELETE /{}/{{id}}": "delete {} number N",
    "GET /{}/{{id}}/name": "tell the name of {} number N",
    "POST /{}/{{id}}/copy": "copy {} number N",
}
ALIKE = 0.9  # API Pack's threshold
EXAMPLES, REQUESTS, TOKENS = 3, 24, 40


@dataclass(frozen=True)
class Endpoint:
    """`call`: method and path; `asks`: the user's request; `schema`: of the arguments."""

    call: str
    asks: str
    schema: str

    def written(self, number: int) -> str:
        """The whole call, with arguments as JSON."""
        return f"{self.call} {json.dumps({'id': number} if '{id}' in self.call else {})}"


def endpoints() -> list[Endpoint]:
    """The forty endpoints of the API."""
    made = []
    for noun, one in NOUNS.items():
        for call, asks in VERBS.items():
            takes = "{{id}}" in call
            properties = {"id": {"type": "integer", "minimum": 1, "maximum": 99}} if takes else {}
            schema = {"type": "object", "properties": properties, "additionalProperties": False}
            schema |= {"required": ["id"]} if takes else {}
            made.append(Endpoint(call.format(noun), asks.format(one if takes else noun), json.dumps(schema)))
    return made


def grammar(api: list[Endpoint]) -> str:
    """A Lark grammar of all calls: each endpoint with the schema of its own arguments."""
    options = {"x-guidance": {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}}
    schemas = {one.schema: f"arguments{n}" for n, one in enumerate({e.schema: e for e in api}.values())}
    calls = [f"{json.dumps(one.call + ' ')} {schemas[one.schema]}" for one in api]
    rules = [f"{name}: %json {json.dumps(json.loads(schema) | options)}" for schema, name in schemas.items()]
    return "\n".join(["start: " + "\n  | ".join(calls), *rules])


def exists(text: str, api: list[Endpoint]) -> bool:
    """Whether a call names an endpoint of the API and its arguments validate."""
    for one in api:
        if text.startswith(one.call + " "):
            try:
                jsonschema.validate(json.loads(text.removeprefix(one.call)), json.loads(one.schema))
            except (ValueError, jsonschema.ValidationError):
                continue
            return True
    return False


def alike(text: str, wanted: str) -> bool:
    """Whether two calls are similar by API Pack's metric, which is not symmetric."""
    return difflib.SequenceMatcher(None, text, wanted).ratio() > ALIKE


def requests(api: list[Endpoint]) -> list[tuple[str, str]]:
    """(prompt with three examples and a request, the right call)."""
    made, draw = [], random.Random(0)
    for _ in range(REQUESTS):
        wanted, *shown = draw.sample(api, 1 + EXAMPLES)
        number = draw.randint(1, 99)
        lines = [f"{one.asks.replace('N', str(n))} => {one.written(n)}" for n, one in enumerate(shown, 3)]
        asks = f"{wanted.asks.replace('N', str(number))} =>"
        made.append(("\n".join([*lines, asks]), wanted.written(number)))
    return made


def called(models: Models, strategy: str, prompt: str, wanted: str, **parameters: str) -> Row:
    """How good the call is that was written. Under the constraint the space is part of the prompt."""
    text = decoded(models, strategy, prompt + (" " if parameters else ""), TOKENS, **parameters).text()
    call = text.replace("<|endoftext|>", "").strip().split("\n")[0]
    right = {"exist": exists(call, endpoints()), "right": call == wanted}
    return right | {"counted as right": alike(call, wanted)}


def settings(models: Models) -> list[Setting]:
    """Freely, and under the constraint."""
    api = endpoints()
    ways = {"free": {}, "constrained": {"constraint": "lark", "constraint_text": grammar(api)}}
    return [Setting((way,), "greedy", given, requests(api)) for way, given in ways.items()]


SWEEP = Sweep(
    names=("way",),
    settings=settings,
    decode=called,
    says=lambda rows: [
        "Under the constraint every call exists and its arguments validate; that says nothing about whether "
        "it is the right one."
    ],
    sampled={"requests": REQUESTS},
)


def run(models: Models) -> Result:
    """The sweep, and how often the metric takes one endpoint for another."""
    pairs = list(permutations(endpoints(), 2))
    wrong = [(a, b) for a, b in pairs if alike(a.call, b.call)]
    same = f"Of {len(pairs)} pairs of two different endpoints, the metric counts {len(wrong)} as the same" + (
        f", such as “{wrong[0][0].call}” and “{wrong[0][1].call}”." if wrong else "."
    )
    return concluded(swept(models, SWEEP), SWEEP, before=[same])


def finding(answer: dict) -> str:
    """What a constraint guarantees, and what it does not."""
    free, held = rows_of(answer)
    return (
        f"Under a constraint {percent(held['exist'])} of the calls exist (freely: {percent(free['exist'])}), "
        f"but {percent(held['right'])} are right; the usual metric counts "
        f"{percent(held['counted as right'])} as right."
    )


def stands(answer: dict) -> Basis:
    """Requests, decoded greedily."""
    free, held = rows_of(answer)
    shares = held["exist"], free["exist"]
    exist = by_shares("calls that exist, constrained against free", *shares, REQUESTS)
    return Basis(SWEEP.sampled, compared=[exist])
