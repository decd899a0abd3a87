"""Which schemas does an engine really enforce, and what does a mask cost?

Sixty schemas in five tiers, and two engines. Declared: the share of schemas that the engine accepts.
Empirical: the share for which the greedy text of the target is complete and validates (draft 2020-12, formats
too). Compliance: the share of the accepted ones for which it does. A schema is over-constrained if the mask
stops a valid instance, and under-constrained if it lets an invalid one through to its end; both are found by
replaying instances, without the model. Also measured: the time to compile a grammar, and the time per token,
its mask and the state after it, against one forward of the target. xgrammar runs in a process of its own
here, and its times include the communication with it.
"""

import json
import time
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import jsonschema
import torch

from decoders.constraints.constraint import Constraint, DeadEnd
from decoders.constraints.kinds import constraint_of, vocabulary_of
from decoders.constraints.problem import ConstraintProblem
from decoders.constraints.settings import ENGINES
from decoders.lane import Lane, Limits
from decoders.packages import assets
from decoders.trace.events import Distribution, Forward
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.reading import percent, rows_of

PAPERS = ("generating-structured-outputs-from-language-models",)
SCHEMAS = assets() / "schemas.json"
PROMPT = "In Cairo lives Max, 98 years old, with a cat. As json:\n"
TOKENS = 120
FORWARDS = 40  # timed forwards of one token each


@dataclass
class Outcome:
    """The result of one engine on one schema."""

    taken: bool = False
    validates: bool = False
    over: bool = False
    under: bool = False
    why: str = ""
    compile_ms: float = 0.0
    token_us: list[float] = field(default_factory=list)
    forced: int = 0  # tokens of the text that had no alternative ...
    tokens: int = 0  # ... of this many


def valid(schema: Any, text: str) -> bool:
    """Whether a text is JSON that the schema allows."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value)


def passes(constraint: Constraint, tokens: list[int], timed: list[float]) -> bool:
    """Whether a text passes the mask token by token and may end there; records the microseconds of each
    token: its mask and the state after it.
    """
    state = constraint.start()
    for token in tokens:
        start = time.perf_counter()
        if not constraint.allowed(state)[token]:
            return False
        state = constraint.advance(state, token)
        timed.append(1e6 * (time.perf_counter() - start))
    return constraint.may_end(state)


def asked(schema: Any, engine: str) -> dict:
    """A lane's parameters."""
    return {
        "constraint": "json_schema",
        "constraint_text": json.dumps(schema),
        "constraint_white_space": "spaced",
        "constraint_engine": engine,
    }


def tried(models: Models, one: dict, engine: str) -> Outcome:
    """One schema with one engine: its instances, then the target's greedy text."""
    target, schema, outcome = models["target"], one["schema"], Outcome()
    parameters = asked(schema, engine)
    vocabulary_of(target, target.eos)  # cached before anything is timed
    start = time.perf_counter()
    try:
        constraint = constraint_of(parameters, target, target.eos)
    except ConstraintProblem as problem:
        outcome.why = str(problem)
        return outcome
    outcome.compile_ms = 1e3 * (time.perf_counter() - start)
    outcome.taken = True
    spelt = {kind: [target.cut(json.dumps(value)) for value in one[kind]] for kind in ("valid", "invalid")}
    try:
        outcome.over = not all(passes(constraint, tokens, outcome.token_us) for tokens in spelt["valid"])
        outcome.under = any(passes(constraint, tokens, outcome.token_us) for tokens in spelt["invalid"])
        trace = Lane("greedy", target.encode(PROMPT), models, parameters, limits=Limits(TOKENS)).run()
    except DeadEnd as end:
        outcome.why = str(end)
        return outcome
    output = [token for token in trace.output() if token not in target.eos]
    outcome.validates = valid(schema, target.tokenizer.decode(output))
    masks = [e for s in trace.steps for e in s.of(Distribution) if e.view == "forbidden"]
    outcome.tokens = len(masks)
    outcome.forced = sum(target.engine.vocabulary - e.among == 1 for e in masks)
    return outcome


def named(one: dict) -> str:
    """What to call a schema: its name, if it has one."""
    return one.get("name") or json.dumps(one["schema"])[:90]


def unconstrained(models: Models, schemas: list[dict]) -> int:
    """For how many schemas the target's own text validates."""
    target = models["target"]
    trace = Lane("greedy", target.encode(PROMPT), models, {}, limits=Limits(TOKENS)).run()
    text = target.tokenizer.decode([token for token in trace.output() if token not in target.eos])
    return sum(valid(one["schema"], text) for one in schemas)


def forward_us(models: Models) -> float:
    """The median of one forward of the target for one token, in microseconds."""
    target = models["target"]
    lane = Lane("greedy", target.encode(PROMPT), models, {}, limits=Limits(FORWARDS)).run()
    return 1e6 * median(e.seconds for s in lane.steps for e in s.events if isinstance(e, Forward))


def coverage(outcomes: list[Outcome]) -> tuple[float, float, float | None]:
    """Declared, empirical, and compliance among the accepted schemas, None if there are none."""
    taken = [one for one in outcomes if one.taken]
    good = [one for one in taken if one.validates]
    return len(taken) / len(outcomes), len(good) / len(outcomes), len(good) / len(taken) if taken else None


def run(models: Models) -> Result:
    """One row per engine and tier, and one for each engine as a whole."""
    return compared(models, json.loads(SCHEMAS.read_text("utf-8")))


def compared(models: Models, schemas: list[dict]) -> Result:
    """The rows of some schemas: `tier`, `schema`, valid and invalid instances, optionally a `name`."""
    tiers = list(dict.fromkeys(one["tier"] for one in schemas))
    forward = forward_us(models)
    rows, lines, says, engines = [], [], [], []
    for engine in ENGINES:
        try:
            constraint_of(asked(True, engine), models["target"], models["target"].eos)
            engines.append(engine)
        except ConstraintProblem as problem:
            says.append(str(problem))
    for at, engine in enumerate(engines, 1):
        every = progress.each(schemas, until=at / len(engines))
        results = [(one, tried(models, one, engine)) for one in every]
        for tier in (*tiers, "all"):
            some = [result for one, result in results if tier in (one["tier"], "all")]
            rows.append([engine, tier, len(some), *summary(some)])
        lines.append(Line(engine, quantiles([us for _, one in results for us in one.token_us])))
        masks = [us for _, one in results for us in one.token_us]
        says.append(
            f"{engine}: half of all tokens take at most {median(masks):.0f} µs, "
            f"{median(masks) / forward:.1%} of a forward of the target ({forward / 1e3:.1f} ms); half of the "
            f"grammars compile within {median(one.compile_ms for _, one in results if one.taken):.1f} ms."
        )
        refused = [f"{one['tier']}: {result.why}" for one, result in results if result.why]
        if refused:
            says.append(f"{engine} refuses {len(refused)}: " + " ".join(refused[:4]))
        for what, some in (
            ("lets an invalid instance of {} through", [one for one, result in results if result.under]),
            ("stops a valid instance of {}", [one for one, result in results if result.over]),
        ):
            if some:
                says.append(f"{engine} {what.format(len(some))}, such as of {named(some[0])}.")
    says.append(
        f"Without a constraint the target's text validates for {unconstrained(models, schemas)} of "
        f"{len(schemas)} schemas: it writes the record that it was trained on, whatever is asked."
    )
    columns = [
        "engine", "tier", "schemas", "declared", "empirical", "compliance", "over-constrained",
        "under-constrained", "compile ms", "µs per token", "forced tokens",
    ]  # fmt: skip
    chart = Chart("Time per token", "share of tokens that are faster", "microseconds", lines)
    return Result(columns, rows, says, chart)


def summary(some: list[Outcome]) -> list[float | None]:
    """The columns of a row, after the number of schemas."""
    taken = [one for one in some if one.taken]
    masks = [us for one in taken for us in one.token_us]
    tokens = sum(one.tokens for one in taken)
    return [
        *coverage(some),
        sum(one.over for one in some) / len(some),
        sum(one.under for one in some) / len(some),
        median(one.compile_ms for one in taken) if taken else None,
        fmean(masks) if masks else None,
        sum(one.forced for one in taken) / tokens if tokens else None,
    ]


def quantiles(values: list[float]) -> list[list[float]]:
    """[share, value] pairs: slow tokens stall a whole batch, so a mean would mislead."""
    ordered = torch.tensor(sorted(values), dtype=torch.float64)
    shares = [x / 100 for x in (*range(5, 100, 5), 99, 100)]
    return [[share, float(torch.quantile(ordered, share))] for share in shares]


def finding(answer: dict) -> str:
    """The gap between the schemas that an engine accepts and those that it handles correctly."""
    whole = [row for row in rows_of(answer) if row["tier"] == "all"]
    parts = [
        f"{row['engine']} takes {percent(row['declared'])}, writes a valid text for "
        f"{percent(row['empirical'])}, and lets invalid ones through for {percent(row['under-constrained'])}"
        for row in whole
    ]
    return f"Of {whole[0]['schemas']} schemas, " + "; ".join(parts) + "."


def stands(answer: dict) -> Basis:
    """Schemas; the engines are deterministic."""
    whole = [row for row in rows_of(answer) if row["tier"] == "all"]
    first, *others = whole  # one engine alone where xgrammar is not installed
    many = first["schemas"]
    names = {
        "declared": "schemas taken",
        "empirical": "valid texts",
        "under-constrained": "invalid let through",
    }
    compared = [
        by_shares(f"{what}, {other['engine']} against {first['engine']}", other[column], first[column], many)
        for other in others
        for column, what in names.items()
    ]
    return Basis({"schemas": many}, compared=compared)
