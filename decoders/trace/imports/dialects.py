"""The dialects of answers and records: how each is recognised, by its fields and never by a file's name, its
reader, and what its files give at most.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from decoders.refusal import Refusal
from decoders.trace.imports import harness, llama_server, ollama, openai, rollouts, sglang
from decoders.trace.imports.answer import Answer, Counts
from decoders.trace.imports.writer import trace_of as written_trace
from decoders.trace.trace import Trace


@dataclass(frozen=True)
class Dialect:
    """A family of files. gives: of "tokens", "top-k", "q" (the draft's probabilities), "counts", "score"."""

    name: str
    title: str
    known_by: str  # the fields by which it is recognised
    gives: tuple[str, ...]
    fits: Callable[[dict], bool]
    read: Callable[[dict], Answer]
    counts: Callable[[dict], Counts] = lambda record: Counts()  # without its tokens


DIALECTS = (  # tried in this order
    Dialect(
        "llama-server",
        "llama.cpp, /completion",
        "completion_probabilities",
        ("tokens", "top-k", "counts"),
        llama_server.fits,
        llama_server.read,
        llama_server.counts_of,
    ),
    Dialect(
        "sglang",
        "SGLang, /generate",
        "meta_info",
        ("tokens", "top-k", "counts"),
        sglang.fits,
        sglang.read,
        sglang.counts_of,
    ),
    Dialect(
        "openai-completions",
        "OpenAI, legacy completions",
        "choices[].logprobs.tokens",
        ("tokens", "top-k", "counts"),
        openai.is_completion,
        openai.completion,
        openai.counts_of,
    ),
    Dialect(
        "openai-chat",
        "OpenAI, chat completions (vLLM, FastDeploy and others)",
        "choices[].logprobs.content",
        ("tokens", "top-k", "q", "counts"),
        openai.is_chat,
        openai.chat,
        openai.counts_of,
    ),
    Dialect(
        "openai-responses",
        "OpenAI, Responses",
        "output[].content[].logprobs",
        ("tokens", "top-k", "counts"),
        openai.is_responses,
        openai.responses,
        openai.counts_of,
    ),
    Dialect(
        "ollama",
        "Ollama, /api/generate and /api/chat",
        "done, logprobs",
        ("tokens", "top-k"),
        ollama.fits,
        ollama.read,
    ),
    Dialect(
        "lm-eval",
        "lm-evaluation-harness, --log_samples",
        "doc_id, resps",
        ("options", "score"),
        harness.fits,
        harness.read,
    ),
    Dialect(
        "prime-rl",
        "prime-rl, token export",
        "token_ids, loss_mask, inference_logprobs",
        ("tokens", "trainer and rollout", "score"),
        rollouts.is_prime,
        rollouts.prime,
    ),
    Dialect(
        "slime",
        "slime, samples",
        "tokens, response, response_length",
        ("tokens", "score"),
        rollouts.is_slime,
        rollouts.slime,
    ),
    Dialect(
        "verl",
        "verl, rollout_data_dir",
        "input, output, score",
        ("text", "score"),
        rollouts.is_verl,
        rollouts.verl,
    ),
)
WITHOUT = {  # a field of an answer -> whose it is; such answers give too little, or are not read
    "generated_text": "TGI's own endpoint",
    "candidates": "Gemini's own endpoint",
}
NO_CHAT = (
    "This is an answer of {}, which cannot be read here; ask the server for a chat completion in OpenAI's "
    "shape, with logprobs: true and top_logprobs."
)
ODD = "This file has the fields of {}, but one of them does not have the form that this program writes."
FAILED = "This is a server's error message, not its answer; correct the request and open the answer."


def dialect_of(record: Any) -> Dialect | None:
    """The dialect of a JSON value; None if it is of none."""
    if not isinstance(record, dict):
        return None
    return next((dialect for dialect in DIALECTS if dialect.fits(record)), None)


def read(record: Any) -> Answer:
    """The answer in a JSON value. Raises Refusal with one sentence that names what was looked for."""
    if dialect := dialect_of(record):
        if record.get("error"):
            raise Refusal(FAILED)
        return shaped(dialect, dialect.read, record)
    raise Refusal(unknown(record))


def shaped(dialect: Dialect, reader: Callable, record: dict) -> Any:
    """What a reader makes of a record. Raises Refusal with one sentence if a field has another shape."""
    try:
        return reader(record)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(ODD.format(dialect.title)) from error


def trace_of(record: Any) -> Trace:
    """The trace of the answer in a JSON value. Raises Refusal with one sentence."""
    return written_trace(read(record))


def counts_of(record: Any) -> Counts:
    """What a JSON value counts, with or without tokens."""
    dialect = dialect_of(record)
    return shaped(dialect, dialect.counts, record) if dialect else Counts()


def unknown(record: Any, begin: str = "This file is not recognised") -> str:
    """Why a JSON value of no dialect cannot be read: what was looked for, or what to do."""
    first = record[0] if isinstance(record, list) and record else record
    if isinstance(first, dict):
        if first.get("error") or first.get("object") == "error":
            return FAILED
        if whose := next((whose for key, whose in WITHOUT.items() if key in first), None):
            return NO_CHAT.format(whose)
    sought = "; ".join(dialect.known_by for dialect in DIALECTS)
    return (
        f"{begin}: it is not a trace, run or page of ours, counts no speculation, and has none of these "
        f"fields: {sought}."
    )
