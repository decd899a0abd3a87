"""Ollama's own endpoints /api/generate and /api/chat, asked with logprobs: true and stream: false."""

from decoders.refusal import Refusal
from decoders.trace.imports.answer import Answer, Counts, count, inner, named
from decoders.trace.imports.openai import tokens_of

NO_LOGPROBS = (
    "This answer of Ollama's own endpoint lists no log-probabilities; ask with logprobs: true, top_logprobs "
    "and stream: false, and open the whole JSON answer."
)


def fits(record: dict) -> bool:
    """Whether a record is an answer of Ollama."""
    return "done" in record and ("response" in record or "message" in record)


def read(record: dict) -> Answer:
    """The answer. Raises Refusal with one sentence if it lists no log-probabilities."""
    entries = record.get("logprobs")
    if not entries:
        raise Refusal(NO_LOGPROBS)
    message = inner(record, "message")
    return Answer(
        "ollama",
        tokens_of(entries, NO_LOGPROBS),
        model=named(record, "model"),
        text=named(record, "response") or named(message, "content"),
        spells_more=bool(named(record, "thinking") or named(message, "thinking")),
        counts=Counts(tokens=count(record.get("eval_count"))),
    )


def merged(lines: list) -> list:
    """The lines of a stream of Ollama as one answer; other values as they are."""
    if len(lines) < 2 or not all(isinstance(line, dict) and fits(line) for line in lines):
        return lines
    if any(line["done"] for line in lines[:-1]):  # several answers
        return lines
    texts = [named(line, "response") or "" for line in lines]
    said = [named(inner(line, "message"), "content") or "" for line in lines]
    entries = [entry for line in lines for entry in line.get("logprobs") or ()]
    whole = {"response": "".join(texts)} if any(texts) else {"message": {"content": "".join(said)}}
    return [lines[-1] | whole | {"logprobs": entries}]
