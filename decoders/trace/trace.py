"""Traces: the append-only record of one lane as steps of events, and its JSON form.

Everything that is drawn, exported, counted or tested is a fold over these events. Imports no torch. The
specification is docs/trace.md, the JSON Schema assets/trace.schema.json.
"""

import functools
import gzip
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decoders import files, packages
from decoders.refusal import Refusal, said_by
from decoders.trace.code import Code, fits
from decoders.trace.costs import Costs
from decoders.trace.events import (
    STATUSES,
    Commit,
    Distribution,
    Event,
    Propose,
    Step,
    Verdict,
    event_from_json,
    step_to_json,
)
from decoders.trace.fast_validation import of_trace
from decoders.trace.json_file import read_json
from decoders.trace.node_index import NodeIndex
from decoders.trace.number_format import number
from decoders.trace.reasons import wrong_reason
from decoders.trace.scores import ConstraintPlace, Table

VERSION = 2
READ = (1, 2)  # versions that are read: in 1, each verdict has a sentence, and scores are of one kind
# Badges that promise nothing about the output distribution.
WITHIN_ANY = ("", "relaxed", "deterministic", "lossless: equal to greedy", "as the server decodes")
# Of a trace that is read. The longest lanes of the app have about half as many events.
MAX_STEPS, MAX_EVENTS, MAX_STEP_EVENTS, MAX_PROMPT = 20_000, 150_000, 20_000, 100_000
CHECKPOINT_EVERY = 32  # steps between two checkpoints in a saved trace
# What draws a trace: names that are looked up on use, like entry points; this package imports none of them.
DRAWER = "explorer.export.replay_page:show"
FIGURES = "visualizers.figures:figure"
GRAPHS = "visualizers.graphs:graph"
PICTURE = "visualizers.figures.svg:svg"


@dataclass
class Trace:
    """One lane's record. `vocabulary` maps every token id that occurs to its bytes, so that a trace is
    self-contained.
    """

    strategy: str
    title: str
    parameters: dict[str, Any]
    seed: int
    models: dict[str, str]  # role -> name
    prompt: list[int]  # node i of the trunk is prompt[i], its parent is i - 1
    vocabulary: dict[int, bytes] = field(default_factory=dict)
    badge: str = ""
    steps: list[Step] = field(default_factory=list)
    ended: str | None = None  # why it ended: one sentence
    costs: Costs = field(default_factory=Costs)
    model_defaults: dict[str, Any] = field(default_factory=dict)  # processors taken from the model's own file
    lacks: list[str] = field(default_factory=list)  # capabilities to record that the target's engine lacks
    trust: dict[str, Any] = field(default_factory=dict)  # of another program's file: trust.Trust, as JSON
    code: Code | None = None  # that ran; None where nobody recorded it

    @property
    def shaping(self) -> dict[str, Any]:
        """The parameters, overridden by the processors that come from the model."""
        return {**self.parameters, **self.model_defaults}

    @property
    def promise(self) -> str:
        """The badge, limited to the most likely tokens where a server lists only those."""
        if self.costs.named is None or self.badge in WITHIN_ANY:
            return self.badge
        kept = "exact" if self.badge.startswith("exact") else self.badge
        mass = number(self.costs.unseen, 2)
        return f"{kept} within the top {self.costs.named}; rest mass up to {mass}"

    def append(self, step: Step) -> None:
        """Appends a step and adds up its costs."""
        self.steps.append(step)
        self.costs.add(step)

    def nodes(self) -> dict[int, tuple[int, int]]:
        """Node -> (parent, token), trunk included; the trunk's first node has parent -1."""
        index = self.index()
        return {node: (parent, index.token[node]) for node, parent in index.parent.items()}

    def index(self) -> NodeIndex:
        """An index of its nodes so far."""
        index = NodeIndex(self.prompt)
        for step in self.steps:
            for event in step.of(Propose):
                index.add(event)
        return index

    def output(self) -> list[int]:
        """The committed token ids, in order."""
        token = self.index().token
        return [token[n] for s in self.steps for commit in s.of(Commit) for n in commit.nodes]

    def text(self, tokens: list[int] | None = None) -> str:
        """The committed text, or that of `tokens` from the vocabulary; bytes that are not (yet) valid UTF-8
        become the replacement character.
        """
        tokens = self.output() if tokens is None else tokens
        return b"".join(self.vocabulary.get(t, b"") for t in tokens).decode("utf-8", "replace")

    def show(self) -> Any:
        """This trace as a notebook displays it, with slider, hover and inspector. Raises ImportError if
        `visualizers` or `explorer` is not on the path, as do `figure` and `graph`.
        """
        return show(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows of a trace at the end of a cell: its text, and a picture that stays in the
        stored notebook, the strategy's first view. It is left out where that view cannot draw this trace.
        """
        bundle = {"text/plain": f"{self.title}: {self.text()!r}"}
        with suppress(ImportError, Refusal):
            bundle["image/svg+xml"] = _entry(PICTURE)(self.figure())
        return bundle

    def figure(self, view: str | None = None, step: int | None = None, look: str = "light") -> Any:
        """A view, such as "beam_tree", after `step` steps (None: all) as a `plotly.graph_objects.Figure`.

        view: the strategy's first if left out; look: "light" or "dark". Raises Refusal with one sentence.
        """
        return _entry(FIGURES)(self, view, step, look)

    def graph(self, kind: str = "tokens", steps: int | None = None) -> Any:
        """The first `steps` steps (None: all) as an attributed `networkx.DiGraph`; `GRAPHS` names the kinds.

        Raises Refusal with one sentence if this trace has nothing of the kind.
        """
        return _entry(GRAPHS)(self, kind, steps)

    def to_json(self) -> dict:
        """The JSON form (see docs/trace.md): header, steps, a checkpoint every 32 steps, totals."""
        return {
            "version": VERSION,
            "strategy": self.strategy,
            "title": self.title,
            "parameters": self.parameters,
            "seed": self.seed,
            "models": self.models,
            "prompt": self.prompt,
            "vocabulary": {str(t): b.hex() for t, b in sorted(self.vocabulary.items())},
            "badge": self.badge,
            "steps": [step_to_json(step) for step in self.steps],
            "checkpoints": checkpoints(self),
            "ended": self.ended,
            "totals": self.costs.totals(),
            **({"model_defaults": self.model_defaults} if self.model_defaults else {}),
            **({"lacks": self.lacks} if self.lacks else {}),
            **({"trust": self.trust} if self.trust else {}),
            **({"code": code} if (code := self._code_json()) else {}),
        }

    def _code_json(self) -> dict[str, Any] | None:
        """The code with the places of the events of each step; None where they were not recorded."""
        places = [step.places for step in self.steps if step.places is not None]
        return self.code.to_json(places) if self.code and len(places) == len(self.steps) else None

    def save(self, path: str | Path) -> None:
        """Writes the JSON form; gzip-compressed if the name ends in .gz."""
        path, text = Path(path), json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)
        files.write(path, gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text)


def show(*traces: Trace) -> Any:
    """One to four traces side by side, as a notebook displays them; see `Trace.show`."""
    return _entry(DRAWER)(*traces)


def _entry(name: str) -> Any:
    module, function = name.split(":")
    return getattr(packages.module(module), function)


def checkpoints(trace: Trace) -> list[dict]:
    """Every CHECKPOINT_EVERY steps: the number of nodes, the status of each node with a verdict, the
    committed nodes, and the totals so far.
    """
    status: dict[str, str] = {}
    committed: list[int] = []
    nodes, costs, snapshots = len(trace.prompt), Costs(), []
    for step in trace.steps:
        nodes += len(step.of(Propose))
        status.update((str(v.node), v.status) for v in step.of(Verdict))
        committed += [n for c in step.of(Commit) for n in c.nodes]
        costs.add(step)
        if (step.index + 1) % CHECKPOINT_EVERY == 0:
            snapshots.append(
                {
                    "step": step.index,
                    "nodes": nodes,
                    "status": dict(status),
                    "committed": list(committed),
                    "totals": costs.totals(),
                }
            )
    return snapshots


def load(path: str | Path) -> Trace:
    """Reads and checks a trace file. Raises Refusal with one sentence if it is too large or not a
    trace.
    """
    return from_json(read_json(Path(path).read_bytes()))


def from_json(record: dict) -> Trace:
    """Checks `record` against the schema and builds the trace. Raises Refusal with one sentence."""
    check_schema(record)
    code = record.get("code")
    if code and not fits(code, [len(step["events"]) for step in record["steps"]]):
        code = None
    trace = Trace(
        **{
            k: record[k]
            for k in ("strategy", "title", "parameters", "seed", "models", "prompt", "badge", "ended")
        },
        vocabulary={int(t): bytes.fromhex(b) for t, b in record["vocabulary"].items()},
        model_defaults=record.get("model_defaults", {}),
        lacks=record.get("lacks", []),
        trust=record.get("trust", {}),
        code=Code.from_json(code) if code else None,
    )
    places = code["steps"] if code else [None] * len(record["steps"])
    for s, at in zip(record["steps"], places, strict=True):
        events = [event_from_json(e) for e in s["events"]]
        trace.append(Step(s["index"], events, s["seconds"], s.get("slots"), at))
    check_events((event for step in trace.steps for event in step.events), len(trace.prompt))
    return trace


def check_trace(record: Any) -> None:
    """Raises Refusal with one sentence if `record` does not follow the published schema or refers to
    unknown nodes.
    """
    check_schema(record)
    check_events((event_from_json(e) for s in record["steps"] for e in s["events"]), len(record["prompt"]))


def check_schema(record: Any) -> None:
    """Raises Refusal with one sentence if `record` does not follow the published schema, or is too large."""
    if not _fits()(record):
        error = next(iter(_validator().iter_errors(record)), None)
        if error is not None:
            where = "/".join(str(p) for p in error.absolute_path) or "its top level"
            wrong = f"{where[:100]}: {said_by(error.message)}."
            raise Refusal(f"This file is not a trace of version {VERSION} or earlier: {wrong}")
    counts = [len(s["events"]) for s in record["steps"]]
    for what, count, most in (
        ("steps", len(counts), MAX_STEPS),
        ("events", sum(counts), MAX_EVENTS),
        ("events in one step", max(counts, default=0), MAX_STEP_EVENTS),
        ("tokens in its prompt", len(record["prompt"]), MAX_PROMPT),
    ):
        if count > most:
            raise Refusal(f"This trace has {count:,} {what}, and {most:,} can be read; open a shorter run.")


def check_events(events: Iterable[Event], trunk: int) -> None:
    """Raises Refusal with one sentence if events contradict each other, see `malformed`."""
    if problem := malformed(events, trunk):
        raise Refusal(f"This trace contradicts itself: {problem}")


@functools.cache
def _schema() -> dict:
    """The published schema."""
    return json.loads((packages.assets() / "trace.schema.json").read_text("utf-8"))


@functools.cache
def _fits() -> Callable[[Any], bool]:
    """The fast check: what passes it follows the schema."""
    return of_trace(_schema())


@functools.cache
def _validator() -> Any:
    """The general validator, which says what is wrong."""
    import jsonschema  # only needed for files that do not pass the fast check

    return jsonschema.Draft202012Validator(_schema())


def malformed(events: Iterable[Event], trunk: int) -> str | None:
    """The first contradiction in a stream of events as a sentence, or None. `trunk` is the length of the
    prompt.

    Looks for unknown nodes and statuses, nodes that are proposed twice, given tokens that do not follow the
    prompt, `top` entries that are not pairs, rows of tables without a value, and log-probabilities above 0.
    """
    known, given = set(range(trunk)), trunk
    for event in events:
        problem = None
        match event:
            case Propose():
                problem = wrong_proposal(event, known, given)
                known.add(event.node)
                given += event.given
            case Verdict():
                problem = wrong_verdict(event, known)
            case Commit():
                problem = wrong_commit(event, known)
            case Distribution():
                problem = wrong_distribution(event)
            case Table() if any(len(row) < 2 for row in event.rows):
                problem = f"a row of the table at node {event.node} has no value."
            case ConstraintPlace() if any(len(span) != 2 for span in (*event.awaited, *event.around)):
                problem = f"a place at node {event.node} is not a beginning and an end."
        if problem:
            return problem
    return None


def wrong_proposal(event: Propose, known: set[int], given: int) -> str | None:
    """Why a node cannot be proposed here, or None. `given`: the next node of the tokens that were given."""
    if event.node in known:
        return f"node {event.node} is proposed twice."
    if event.parent not in known:
        return f"node {event.node} hangs on node {event.parent}, which does not exist."
    if event.given and (event.node, event.parent) != (given, given - 1):
        return f"node {event.node} is said to be given, but does not follow the prompt."
    if above_0(event.logprob):
        return f"the log-probability of node {event.node} is above 0."
    return None


def wrong_verdict(event: Verdict, known: set[int]) -> str | None:
    """Why there cannot be this verdict, or None."""
    if event.status not in STATUSES:
        return f"node {event.node} has the unknown status {event.status!r}."
    if event.node not in known:
        return f"a verdict names node {event.node}, which does not exist."
    return next(filter(None, map(wrong_reason, event.why)), None)


def wrong_commit(event: Commit, known: set[int]) -> str | None:
    """Why these nodes cannot be committed, or None."""
    if unknown := [n for n in event.nodes if n not in known]:
        return f"node {unknown[0]} is committed but does not exist."
    if len(event.logprobs) != len(event.nodes):
        return "a commit has not one log-probability for each node."
    if any(map(above_0, event.logprobs)):
        return f"a log-probability of the commit of node {event.nodes[0]} is above 0."
    return None


def wrong_distribution(event: Distribution) -> str | None:
    """Why this cannot be a distribution, or None."""
    if any(len(pair) != 2 for pair in event.top):
        return f"the top of the distribution after node {event.node} is not pairs of token and number."
    if any(above_0(logprob) for _, logprob in event.top):
        return f"a log-probability after node {event.node} is above 0."
    return None


def above_0(logprob: float | None) -> bool:
    """Whether this cannot be a log-probability: above 0 by more than rounding."""
    return logprob is not None and logprob > 0.01
