"""A run as a file: its settings and one trace per lane; docs/trace.md describes the format.

Reads such files, single traces, saved pages and answers of other servers, and checks all of them before use.
Knows traces and settings, nothing of runs or pages.
"""

import base64
import gzip
import re
from dataclasses import asdict

from decoders.refusal import Refusal
from decoders.strategy import shortened
from decoders.trace import events, given_tokens, openai_import, trace, vllm_counts
from decoders.trace.json_file import read_json
from decoders.trace.trace import Trace
from explorer.off_loop import encoded
from explorer.runs import validation

KIND = "decoding-explorer-run"
VERSION = 1
NEITHER = (
    "This file is neither a trace nor a chat completion with log-probabilities. Choose a file saved by "
    "Decoding Explorer, or a server's JSON answer that was asked with logprobs: true."
)
METRICS = re.compile(rb"# (HELP|TYPE) \w|[A-Za-z_]\w*:\w+(\{[^}\n]*\})? [-+0-9]")  # Prometheus text format
STREAM = re.compile(rb"\s*(event:[^\n]*\n)?data: *[{\[]")  # server-sent events
COUNTED = re.compile(rb'"(vllm[:_]spec_decode_)?num_draft_tokens(_total)?"')  # JSON with a server's counts
COUNTS_ALONE = (
    "These are a server's metrics: neither a trace nor a chat completion with log-probabilities. The tab "
    "Traces shows what they count."
)
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
    if data[:200].lstrip().lower().startswith(b"<!doctype html"):
        match = BLOB.search(data)
        if not match:
            raise Refusal("This page was not saved by Decoding Explorer; choose one that was.")
        try:
            data = base64.b64decode(match[1], validate=True)
        except ValueError as error:
            raise Refusal("This saved page is damaged; save it again.") from error
    if METRICS.match(data):
        raise Refusal(COUNTS_ALONE)
    if STREAM.match(data):
        raise Refusal(openai_import.STREAMED)
    record = read_json(data)
    if openai_import.is_response(record):
        traces = [openai_import.from_response(record)]
        setup = settings(traces)
        del setup["models"]  # it can be shown but not decoded again
        setup["lanes"][0]["view"] = "draft_rounds" if traces[0].costs.proposed else "entropy"
        return setup, traces
    if not isinstance(record, dict) or not {"kind", "version", "steps"} & set(record):
        raise Refusal(openai_import.other_shape(record) or NEITHER)
    if record.get("kind") != KIND:
        traces = [trace.from_json(record)]
        return settings(traces), traces
    return check_run(record)


def counts(data: bytes) -> dict | None:
    """Reads a server's counts of speculative decoding, see `vllm_counts`; returns None for other files.

    Raises Refusal with one sentence if the counts cannot be read.
    """
    if METRICS.match(data):
        return vllm_counts.from_prometheus(data)
    if not data.lstrip().startswith(b"{") or not COUNTED.search(data):
        return None
    record = read_json(data)
    if {"kind", "version", "steps"} & set(record) or openai_import.has_logprobs(record):
        return None
    return vllm_counts.from_json(record)


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
