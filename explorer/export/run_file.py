"""A run as a file: its settings and one trace per lane; docs/trace.md describes the format.

Reads such files, single traces, saved pages and answers of other servers, and checks all of them before use.
"""

import base64
import gzip
import re
from dataclasses import asdict

from decoders.refusal import Refusal
from decoders.strategy import shortened
from decoders.trace import events, given_tokens, trace
from decoders.trace.imports import dialects, log_lines, metrics_text, openai, vllm_counts
from decoders.trace.imports.metrics_text import METRICS
from decoders.trace.imports.records import Record, records_of
from decoders.trace.json_file import NotJson, read_json
from decoders.trace.scores import Measure, Rank
from decoders.trace.trace import Trace
from explorer.off_loop import encoded
from explorer.runs import validation

KIND = "decoding-explorer-run"
VERSION = 1
STREAM = re.compile(rb"\s*(event:[^\n]*\n)?data: *[{\[]")  # server-sent events
COUNTED = re.compile(  # JSON with counts of speculation
    rb'"(vllm[:_]spec_decode_)?num_draft_tokens(_total)?"|"draft_n"|"spec_verify_ct"|"accepted_prediction_tokens"'
)
PICKLED = b"PK\x03\x04"
NOT_READ = (
    "This is a PyTorch or zip archive, which may hold code and is not read; write the samples as JSON, one "
    "per line, and open that."
)
MANY = "This file holds {:,} records; choose one of them."
COUNTS_ALONE = (
    "These are a server's counts, which have no tokens: neither a trace nor an answer with "
    "log-probabilities. The tab Traces shows what they count, as does the command open."
)
BEGINNING = 4 * 2**20  # bytes of a log in which a line of speculation must stand
BLOB = re.compile(rb'<script type="text/plain" id="explorer-run">([A-Za-z0-9+/=]*)</script>')


def container(traces: list[Trace], setup: dict | None = None) -> dict:
    """A run as JSON. Raises Refusal with one sentence unless there are one to four traces."""
    if not 1 <= len(traces) <= validation.MAX_LANES:
        raise Refusal(f"A saved run has one to {validation.MAX_LANES} lanes, not {len(traces)}.")
    setup = {**settings(traces), **(setup or {})}
    return {"version": VERSION, "kind": KIND, "setup": setup, "traces": [t.to_json() for t in traces]}


def settings(traces: list[Trace]) -> dict:
    """The settings of the page for these traces: `{prompt, max_new_tokens, models, lanes}`."""
    first = traces[0]
    prompt = b"".join(first.vocabulary.get(token, b"") for token in first.prompt)
    longest = max(sum(len(c.nodes) for s in t.steps for c in s.of(events.Commit)) for t in traces)
    return {
        "prompt": prompt.decode("utf-8", "replace"),
        "max_new_tokens": min(max(longest, 1), validation.MAX_NEW_TOKENS),
        "models": {role: name for t in reversed(traces) for role, name in t.models.items()},
        "lanes": [
            {"strategy": t.strategy, "parameters": t.parameters, "seed": t.seed, "begin": given_tokens.of(t)}
            for t in traces
        ],
    }


def pack(record: dict, compressed: bool = True, level: int = 6) -> bytes:
    """The bytes of the file of a trace or a run, given as JSON. level 9 takes three times as long as the
    default and saves 3 %.
    """
    text = encoded(record, finite=True).encode()
    return gzip.compress(text, level, mtime=0) if compressed else text


def unpack(data: bytes) -> tuple[dict, list[Trace]]:
    """Reads settings and traces from the bytes of a saved run, a single trace, a saved page, or a server's
    answer. Raises Refusal with one sentence if they are none of these, too large, or inconsistent.
    """
    if is_page(data):
        match = BLOB.search(data)
        if not match:
            raise Refusal("This page was not saved by Decoding Explorer; choose one that was.")
        try:
            data = base64.b64decode(match[1], validate=True)
        except ValueError as error:
            raise Refusal("This saved page is damaged; save it again.") from error
    if METRICS.match(data) or log_lines.KNOWN.search(data[:BEGINNING]) and not data.lstrip().startswith(b"{"):
        raise Refusal(COUNTS_ALONE)
    if STREAM.match(data):
        raise Refusal(openai.STREAMED)
    if data.startswith(PICKLED):
        raise Refusal(NOT_READ)
    if found := records_of(data):
        if len(found) > 1:
            raise Refusal(MANY.format(len(found)))
        return unpack_record(found[0])
    try:
        record = read_json(data)
    except NotJson as error:
        raise Refusal(dialects.unknown(None, "This file is not JSON and not recognised")) from error
    if isinstance(record, dict) and record.get("kind") == KIND:
        return check_run(record)
    return unpack_record(Record("", record))


def is_page(data: bytes) -> bool:
    """Whether a file is a page."""
    return data[:200].lstrip().lower().startswith(b"<!doctype html")


def unpack_record(record: Record) -> tuple[dict, list[Trace]]:
    """The settings and the one trace of a record. Raises Refusal with one sentence."""
    value = record.value
    if isinstance(value, dict) and {"kind", "version", "steps"} & set(value):
        traces = [trace.from_json(value)]
        return settings(traces), traces
    traces = [record.trace()]
    setup = settings(traces)
    del setup["models"]  # it can be shown but not decoded again
    setup["lanes"][0]["view"] = first_view(traces[0])
    return setup, traces


def first_view(of: Trace) -> str:
    """The view with which an imported lane opens."""
    if of.costs.proposed:
        return "draft_rounds"
    if any(step.of(Rank) for step in of.steps):
        return "beam_tree"
    if any(step.of(events.Distribution) for step in of.steps):
        return "entropy"
    return "values_per_token" if any(step.of(Measure) for step in of.steps) else "text"


def counts(data: bytes) -> dict | None:
    """Reads a server's counts of speculative decoding, in the form of `vllm_counts.checked`; returns None for
    other files. Raises Refusal with one sentence if the counts cannot be read.
    """
    if METRICS.match(data):
        return metrics_text.read(data)
    text = data.lstrip()
    if not text.startswith((b"{", b"[", b"\x1f\x8b", b"<")) and log_lines.KNOWN.search(data[:BEGINNING]):
        return log_lines.read(data)
    if not text.startswith(b"{") or not COUNTED.search(data) or records_of(data):
        return None
    record = read_json(data)
    if {"kind", "version", "steps"} & set(record) or has_tokens(record):
        return None
    return vllm_counts.from_json(record) or vllm_counts.of_answer(record, dialects.counts_of(record))


def has_tokens(record: dict) -> bool:
    """Whether a JSON object is an answer with tokens, of which a lane can be made."""
    try:
        return bool(dialects.read(record).tokens)
    except Refusal:
        return False


def check_run(record: dict) -> tuple[dict, list[Trace]]:
    """The settings and traces of a run. Raises Refusal with one sentence if it is not valid."""
    if record.get("version") != VERSION:
        version = shortened(record.get("version"))
        raise Refusal(f"This run has version {version}; this program reads {VERSION}.")
    records, given = record.get("traces"), record.get("setup")
    if not isinstance(records, list) or not 1 <= len(records) <= validation.MAX_LANES:
        raise Refusal(f"A saved run has one to {validation.MAX_LANES} traces; this file does not.")
    if not isinstance(given, dict):
        raise Refusal("This run has no settings; choose a file saved by Decoding Explorer.")
    traces = [trace.from_json(r) for r in records]
    setup = asdict(validation.check(given))
    lanes = setup["lanes"] = list(setup["lanes"])
    if [lane["strategy"] for lane in lanes] != [t.strategy for t in traces]:
        raise Refusal("The settings of this run name other strategies than its traces.")
    views = [lane.get("view") for lane in given["lanes"]]
    for lane, view in zip(lanes, views, strict=True):
        if isinstance(view, str):
            lane["view"] = view
    return {**setup, "models": settings(traces)["models"]}, traces


def title(prompt: str) -> str:
    """A title for a run, with the beginning of its prompt."""
    words = " ".join(prompt.split())
    return "Decoding Explorer: " + (words if len(words) <= 60 else words[:59] + "…")
