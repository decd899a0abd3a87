"""Makes one trace per request of a spool's records: rounds as our own draft-and-verify loop records them.

Counts are vLLM's: an accepted token counts as accepted even where the text ended before it, and is committed
only if it belongs to the text.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from decoders import registry
from decoders.models.catalog import SHIPPED
from decoders.speculative.draft_verify_loop import record_verdicts
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, TokenTest, Verification
from decoders.strategy import Strategy
from decoders.trace.endings import END_OF_TEXT, MAX_NEW_TOKENS
from decoders.trace.events import Distribution, Forward, Note
from decoders.trace.reasons import Code, Reason
from decoders.trace.trace import Trace
from decoders.watch.header import LARGEST_SEED, own_parameters
from decoders.watch.recording import Recording
from decoders.watch.vllm.spool import Record

MAX_TRACE_BYTES = 24 * 2**20  # of one trace's events, as JSON; files larger than 64 MiB cannot be opened
EVENT_BYTES = 24  # of a pair of token and log-probability, about
# vLLM's name of a proposer -> our strategy of that kind; others are drafted like by a draft model.
STRATEGIES = {
    None: "greedy",
    "draft_model": "speculative",
    "ngram": "prompt_lookup",
    "ngram_gpu": "prompt_lookup",
    "suffix": "prompt_lookup",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "medusa": "medusa",
    "mlp_speculator": "mlp_speculator",
}
COPIES = ("ngram", "ngram_gpu", "suffix")  # proposers that copy from the text
NO_Q = "vLLM gave no probabilities q of the drafts{}{}."


@dataclass
class Moment:
    """A clock that shows what it is set to."""

    seconds: float = 0.0

    def now(self) -> float:
        """Seconds since the request began."""
        return self.seconds


@dataclass
class Place:
    """One row of numbers of a request's step, by the names of `measured.of_rows`."""

    arrays: dict[str, np.ndarray]
    row: int

    def of(self, token: int, name: str = "raw") -> float:
        """The log-probability of the drafted token (0) or the one that was written (1) here."""
        return finite(float(self.arrays[f"{name}.of"][self.row, token]))

    def distribution(self, name: str, node: int, view: str) -> Distribution:
        """What was on offer here."""
        ids, logprobs = self.arrays[f"{name}.top"][self.row], self.arrays[f"{name}.logprobs"][self.row]
        pairs = zip(ids.tolist(), logprobs.tolist(), strict=True)
        top = [[token, finite(logprob)] for token, logprob in pairs if logprob > -1e30]
        rest, entropy, among = (
            self.arrays[f"{name}.{kind}"][self.row].item() for kind in ("rest", "entropy", "among")
        )
        return Distribution(node, view, top, finite(rest), max(0.0, finite(entropy)), among=among)

    def best(self) -> int:
        """The most likely token before any processor."""
        return int(self.arrays["raw.top"][self.row, 0])


@dataclass
class Step:
    """What one step of the engine did for one request."""

    seconds: float  # since the engine's clock began, at its end
    forward: Forward
    drafting: float  # seconds of the drafter before it
    drafted: list[int]
    written: list[int]
    raw: list[Place]  # one for each drafted token and one after them
    processed: list[tuple[str, Place]]  # the same after the processors, as name and place; empty if unchanged
    draft: list[Place]  # one for each drafted token, empty without q
    us: list[float]
    residual: float | None = None


def finite(value: float) -> float:
    """A number that JSON has: a broken sampler may give others."""
    return value if math.isfinite(value) else -1e9 if value != math.inf else 1e9


def share_of(value: float) -> float:
    """A number as a probability."""
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


@dataclass
class Request:
    """One request and the trace that grows."""

    engine: dict[str, Any]
    begun: dict[str, Any]
    bytes_of: Callable[[int], bytes]
    start: float | None = None
    used: int = 0  # bytes, about
    drafts: int = 0
    ending: str | None = None  # why the text is over
    late: Note | None = None  # what vLLM did after that
    late_counts: list[int] = field(default_factory=lambda: [0, 0, 0])  # rounds, tokens drafted and accepted
    recording: Recording = field(init=False)
    clock: Moment = field(default_factory=Moment)

    def __post_init__(self) -> None:
        params = self.begun["params"]
        trace = header(self.engine, self.begun)
        ends = {params["eos"], *(params["stop_token_ids"] or ())} - {None}
        room = self.engine["longest"] - len(trace.prompt)
        budget = min(room, (params["max_tokens"] or room) - len(self.begun["written"]))
        self.recording = Recording(trace, self.bytes_of, frozenset(ends), budget, self.clock)
        self.recording.note(
            f"Recorded from vLLM {self.engine['version']}'s own sampler, request {self.begun['request']}."
        )
        if self.begun["written"]:
            count = len(self.begun["written"])
            self.recording.note(f"It had written {count} tokens before: they are part of the prompt here.")

    @property
    def trace(self) -> Trace:
        """The trace so far."""
        return self.recording.trace

    def preempted(self) -> None:
        """vLLM took its memory away; it reads its text again later."""
        if self.recording.open:
            self.recording.note("vLLM preempted this request for lack of memory, and reads its text again.")

    def end(self, sentence: str) -> None:
        """vLLM has no more of it."""
        self.recording.end(sentence)

    def step(self, step: Step) -> None:
        """Records a step: of a text that is over only what vLLM counts."""
        recording = self.recording
        if self.start is None:
            self.start = step.forward.start
        self.clock.seconds = step.seconds - self.start
        step.forward.start -= self.start
        if not recording.open:
            self._after_the_end(step)
            return
        if step.drafted and step.drafting and self.engine["method"] not in COPIES:
            begin = max(0.0, step.forward.start - step.drafting)
            recording.forward(Forward("draft", "draft", len(step.drafted), 1, begin, step.drafting))
        recording.forward(step.forward)
        if not step.written:  # a part of the prompt was read
            return
        self._round(step)
        recording.close_step()
        if self.used > MAX_TRACE_BYTES:
            self.ending = self.ending or "Recording stopped here: the trace has reached its largest size."
        if self.ending:
            recording.end(self.ending)

    def _after_the_end(self, step: Step) -> None:
        """vLLM tests drafts of a text that is over until its sampler hears of that."""
        if not (step.drafted and step.written):
            return
        for at, count in enumerate((1, len(step.drafted), len(step.written) - 1)):
            self.late_counts[at] += count
        rounds, drafted, accepted = self.late_counts
        text = (
            f"After the end vLLM made {rounds} more rounds, with {drafted} drafted and {accepted} accepted "
            "tokens; they are not recorded."
        )
        events = self.trace.steps[-1].events
        if self.late is None:
            self.late = Note(text)
            events.append(self.late)
        self.late.text = text

    def _round(self, step: Step) -> None:
        recording, tip = self.recording, self.recording.tip
        draft, accepted = Draft(tip), len(step.written) - 1
        parent = tip
        for token, place in zip(step.drafted, step.draft or [None] * len(step.drafted), strict=True):
            logprob = None if place is None else place.of(0, "draft")
            source = "prompt" if self.engine["method"] in COPIES else "draft"
            fill = FIXED if place is None else SAMPLED
            parent = draft.propose(recording, parent, token, logprob, source=source, fill=fill)
        nodes = [tip, *draft.nodes]
        if step.drafted and not self.drafts and not step.draft:
            copied = ", which are copied from the text" if self.engine["method"] in COPIES else ""
            recording.note(
                NO_Q.format(copied, ": each counts as certain (q = 1)" if self.temperature else "")
            )
        self.drafts += bool(step.drafted)
        kept = self._kept(step.written)
        own = None if kept <= accepted else step.written[accepted]
        verification = self._verified(step, draft, accepted, own)
        for node, place in zip(nodes, step.draft, strict=False):
            self._offer(place.distribution("draft", node, "draft"))
        for node, place in zip(nodes, step.raw[: accepted + 1], strict=False):
            self._offer(place.distribution("raw", node, "target"))
        for node, (name, place) in zip(nodes, step.processed[: accepted + 1], strict=False):
            self._offer(place.distribution(name, node, "processed"))
        places = enumerate(zip(nodes, step.raw, strict=False))
        raw = {node: self._known(place, step, at) for at, (node, place) in places}
        recorded = record_verdicts(recording, draft, verification, raw)
        written = [place.of(1) for place in step.raw[:kept]]
        recording.commit(recorded[:kept], written)

    @property
    def temperature(self) -> float:
        """0 if it always takes the most likely token."""
        return self.begun["params"]["temperature"] or 0.0

    def _known(self, place: Place, step: Step, at: int) -> dict[int, float]:
        """The target's log-probabilities of the tokens that matter at a place."""
        ids, logprobs = place.arrays["raw.top"][place.row], place.arrays["raw.logprobs"][place.row]
        known = dict(zip(ids.tolist(), map(finite, logprobs.tolist()), strict=True))
        if at < len(step.drafted):
            known[step.drafted[at]] = place.of(0)
        if at < len(step.written):
            known[step.written[at]] = place.of(1)
        return known

    def _offer(self, event: Distribution) -> None:
        self.recording.spell(token for token, _ in event.top)
        self.recording.events.append(event)
        self.used += EVENT_BYTES * (len(event.top) + 4)

    def _kept(self, written: list[int]) -> int:
        """How many of these tokens belong to the text: vLLM drops what follows its end."""
        for place in range(1, len(written) + 1):
            self.ending = self._ending(written[:place])
            if self.ending:
                return place
        return len(written)

    def _ending(self, newest: list[int]) -> str | None:
        """Why the text is over with the last of its newest tokens, as vLLM's scheduler and detokenizer see
        it; None if it is not.
        """
        recording, params = self.recording, self.begun["params"]
        if newest[-1] == params["eos"]:
            return END_OF_TEXT
        if newest[-1] in recording.eos:
            return "A stop token of the request ended the text."
        stops = params["stop"] if recording.written + len(newest) > params["min_tokens"] else []
        if stops:
            output = self.trace.output()
            for token in newest:
                recording.spell((token,))
            text, before = self.trace.text([*output, *newest]), len(self.trace.text([*output, *newest[:-1]]))
            for stop in stops:
                if stop in text[max(0, before - len(stop) + 1) :]:
                    return f"The stop string {stop!r} ended the text."
        if recording.written + len(newest) >= recording.budget:
            return MAX_NEW_TOKENS.format(recording.budget)
        return None

    def _verified(self, step: Step, draft: Draft, accepted: int, own: int | None) -> Verification:
        """The tests that vLLM made, with its numbers."""
        made = Verification(path=draft.nodes[:accepted], token=own)
        for at, node in enumerate(draft.nodes[: accepted + 1]):
            made.tests.append(self._test(step, node, at, at < accepted))
        place = step.processed[accepted] if step.processed else ("raw", step.raw[accepted])
        after_all = accepted == len(draft.nodes)
        if self.temperature == 0.0:
            made.reason = Reason(Code.ARGMAX_AFTER_ALL if after_all else Code.ARGMAX_NOT_DRAFTED)
        elif own is not None:
            logprob = place[1].of(0 if place[0] == "bonus" else 1, place[0])
            p = math.exp(min(0.0, logprob)) if after_all or step.residual is None else step.residual
            made.p = p
            made.reason = Reason(Code.ALL_ACCEPTED if after_all else Code.RESIDUAL, {"p": p})
        return made

    def _test(self, step: Step, node: int, at: int, accepted: bool) -> TokenTest:
        if self.temperature == 0.0:
            name, place = step.processed[at] if step.processed else ("raw", step.raw[at])
            best = int(place.arrays[f"{name}.top"][place.row, 0])
            why = Reason(Code.MOST_LIKELY) if accepted else Reason(Code.OTHER_PREFERRED, {"preferred": best})
            if not accepted and best == step.drafted[at]:  # of equal ones vLLM takes another than topk
                why = Reason(Code.OTHER_PREFERRED, {"preferred": step.written[at]})
            return TokenTest(node, accepted, reasons=(why,))
        name, place = step.processed[at] if step.processed else ("raw", step.raw[at])
        p, u = math.exp(min(0.0, place.of(0, name))), step.us[at] if step.us else None
        if not step.draft:
            why = Reason(Code.CERTAIN_DRAFT, {"p": p, "u": u, "accepted": accepted})
            return TokenTest(node, accepted, p=p, u=u, threshold=p, reasons=(why,))
        q = math.exp(min(0.0, step.draft[at].of(0, "draft")))
        numbers = {"p": p, "q": q, "u": u, "accepted": accepted, "slot": 0}
        return TokenTest(node, accepted, p=p, q=q, u=u, reasons=(Reason(Code.TOKEN_REJECTION, numbers),))


def header(engine: dict[str, Any], begun: dict[str, Any]) -> Trace:
    """An empty trace of a request."""
    params = begun["params"]
    temperature = params["temperature"] or 0.0
    name = STRATEGIES.get(engine["method"], "speculative")
    name = "sample" if name == "greedy" and temperature else name
    known = registry.get(name)
    chosen = {key: params[key] for key in ("top_p", "top_k", "min_p", "repetition_penalty") if params[key]}
    chosen |= {} if name == "greedy" else {"temperature": temperature}
    if params["stop"]:
        chosen["stop_strings"] = " ".join(params["stop"])
    if engine["method"]:
        chosen |= chain(known, engine["num_speculative_tokens"])
    parameters, others = own_parameters(known, chosen)
    if "model_defaults" in parameters:
        parameters["model_defaults"] = False
    others |= {"method": engine["method"]} if engine["method"] else {}
    if params["structured"]:
        others["structured_outputs"] = True
    models = {"target": short(engine["model"])}
    if engine["drafter"] and engine["drafter"] != engine["model"]:
        models["draft"] = short(engine["drafter"])
    seed = params["seed"] if temperature and params["seed"] else 0
    return Trace(
        strategy=name,
        title=f"{known.title if engine['method'] != 'suffix' else 'Suffix decoding'} (vLLM)",
        parameters=parameters,
        seed=seed if 0 <= seed < LARGEST_SEED else 0,
        models=models,
        prompt=[*begun["prompt"], *begun["written"]],
        badge="deterministic" if name == "greedy" else known.badge(parameters),
        model_defaults=others,
    )


def chain(known: Strategy, length: int) -> dict[str, Any]:
    """A strategy's parameters for a chain of `length` drafted tokens, which is what vLLM drafts."""
    declared = {one.name: one for one in known.parameters}
    if "tree" in declared and "chain" in declared["tree"].choices:
        return {"tree": "chain", "depth": length}
    named = (name for name in ("num_assistant_tokens", "prompt_lookup_num_tokens") if name in declared)
    return {next(named, "num_speculative_tokens"): length}


def short(model: str) -> str:
    """The name of a shipped model, else what vLLM was given."""
    return str(Path(model).resolve()).removeprefix(f"{SHIPPED}/") if Path(model).is_dir() else model


class Requests:
    """The requests of one spool, in the order in which they began."""

    def __init__(self, bytes_of: Callable[[str], Callable[[int], bytes]]):
        """bytes_of: name of a tokenizer -> the bytes of its tokens."""
        self._bytes_of = bytes_of
        self.engine: dict[str, Any] = {}
        self.open: dict[str, Request] = {}
        self.all: list[Request] = []
        self.fault = ""  # why recording stopped early

    def read(self, records: Iterable[Record]) -> set[str]:
        """Takes in records; returns the requests that have changed."""
        changed: set[str] = set()
        for record, arrays in records:
            match record["kind"]:
                case "engine":
                    self.engine = record
                case "begun":
                    changed |= self._begun(record)
                case "step":
                    changed |= self._step(record, arrays)
                case "preempted":
                    for one in self._named(record):
                        one.preempted()
                case "ended" | "closed":
                    changed |= self._ended(record)
        return changed

    def _named(self, record: dict[str, Any]) -> list[Request]:
        return [self.open[name] for name in record["requests"] if name in self.open]

    def _begun(self, record: dict[str, Any]) -> set[str]:
        if not record["prompt"]:  # it began with embeddings, which have no tokens
            return set()
        one = Request(self.engine, record, self._bytes_of(self.engine["tokenizer"]))
        self.open[record["request"]] = one
        self.all.append(one)
        return {record["request"]}

    def _step(self, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> set[str]:
        own = {name: step for name, step in steps(record, arrays) if name in self.open}
        for name, step in own.items():
            self.open[name].step(step)
        return set(own)

    def _ended(self, record: dict[str, Any]) -> set[str]:
        self.fault = record.get("fault") or self.fault
        sentence = "vLLM ended this request before its text was over."
        for one in self._named(record):
            one.end(f"{self.fault[0].upper()}{self.fault[1:]}." if record.get("fault") else sentence)
        return {name for name in record["requests"] if name in self.open}


def steps(record: dict[str, Any], arrays: dict[str, np.ndarray]) -> Iterable[tuple[str, Step]]:
    """Each request's part of a step."""
    requests, drafted = record["requests"], record["drafted"]
    tokens, row, first = sum(record["tokens"]) or 1, 0, 0
    for number, name in enumerate(requests):
        count, own = drafted[number], record["tokens"][number]
        ids = arrays["drafted"][first : first + count].tolist() if count else []
        valid = next((at for at, token in enumerate(ids) if token < 0), count)  # the rest is padding
        written = [token for token in arrays["sampled"][number].tolist() if token >= 0]
        skipped = number in record["skipped"]
        kind = "verify" if count else "prefill" if own > 1 or skipped else "decode"
        share = record["forward"] * own / tokens
        forward = Forward("target", kind, own, 1, record["start"], share, lanes=len(requests))
        target = (
            [("target", Place(arrays, first + at)) for at in range(count)] if "target.top" in arrays else []
        )
        bonus = [("bonus", Place(arrays, number))] if "bonus.top" in arrays else []
        has_q = "draft.top" in arrays
        yield (
            name,
            Step(
                record["start"] + record["forward"],
                forward,
                record["drafting"] / max(1, sum(map(bool, drafted))),
                ids[:valid],
                [] if skipped else written,
                [Place(arrays, row + at) for at in range(count + 1)],
                [*target, *bonus] if bonus or target else [],
                [Place(arrays, first + at) for at in range(valid)] if has_q else [],
                arrays["u"][first : first + count].tolist() if "u" in arrays else [],
                share_of(arrays["residual"][number].item()) if "residual" in arrays else None,
            ),
        )
        row, first = row + count + 1, first + count
