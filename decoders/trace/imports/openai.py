"""OpenAI's shapes, as many servers write them: chat completions, legacy completions and Responses; with
vLLM's metrics of the request (`metrics.speculative_decoding`) and FastDeploy's `draft_logprobs`.
"""

from collections.abc import Iterable
from typing import Any

from decoders.refusal import Refusal
from decoders.trace.imports.answer import (
    MAX_DRAFTED,
    Answer,
    Counts,
    Listed,
    Written,
    check_size,
    count,
    inner,
    named,
    nats,
    piece,
    tops,
    whole,
    written,
)

SEVERAL = "The file holds {} answers; this is the first."
NO_LOGPROBS = (
    "This answer has no log-probabilities in OpenAI's shape; ask the server with logprobs: true and "
    "top_logprobs, and open the whole JSON answer."
)
STREAMED = "This is a stream of events; ask the server with stream: false, and open the whole JSON answer."
ECHOED = "The answer repeats its prompt (echo): tokens without a log-probability are at the front."


def is_chat(record: dict) -> bool:
    """Whether a record is a chat completion, or nothing closer than that."""
    return isinstance(record.get("choices"), list) and not is_completion(record)


def is_completion(record: dict) -> bool:
    """Whether a record is a legacy completion, whose log-probabilities are columns."""
    return isinstance(logprobs_of(record), dict) and "tokens" in logprobs_of(record)


def is_responses(record: dict) -> bool:
    """Whether a record is an answer of Responses."""
    output = record.get("output")
    return isinstance(output, list) and (
        record.get("object") == "response"
        or any(isinstance(item, dict) and "content" in item for item in output)
    )


def logprobs_of(record: dict) -> Any:
    """What the first choice has as its log-probabilities."""
    choices = record.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("logprobs") if isinstance(first, dict) else None


def chat(record: dict) -> Answer:
    """The first choice of a chat completion. Raises Refusal with one sentence if it holds no
    log-probabilities.
    """
    first = next(iter(record["choices"]), None)
    choice = first if isinstance(first, dict) else {}
    if "delta" in choice:
        raise Refusal(STREAMED)
    try:
        tokens = tokens_of(choice["logprobs"]["content"], NO_LOGPROBS)
        rounds = rounds_of((record.get("metrics") or {}).get("speculative_decoding") or {})
        tokens, places = with_draft(tokens, choice.get("draft_logprobs"))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(NO_LOGPROBS) from error
    message = inner(choice, "message")
    return Answer(
        "openai-chat",
        tokens,
        model=named(record, "model"),
        text=named(message, "content"),
        spells_more=bool(named(message, "reasoning_content", "reasoning") or message.get("tool_calls")),
        counts=counts_of(record),
        rounds=rounds,
        draft_places=places,
        notes=several(record["choices"]),
    )


def completion(record: dict) -> Answer:
    """The first choice of a legacy completion: tokens and their numbers in columns of one length."""
    choice = record["choices"][0]
    try:
        columns = choice["logprobs"]
        names, values = columns["tokens"], columns["token_logprobs"]
        likely = columns.get("top_logprobs") or [None] * len(names)
        check_size(len(names), sum(len(one or ()) for one in likely))
        tokens = [
            written(name.encode(), nats(value), ((n.encode(), nats(v)) for n, v in (top or {}).items()))
            for name, value, top in zip(names, values, likely, strict=True)
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(NO_LOGPROBS) from error
    # A prompt that is repeated begins with a token that nothing stands before.
    echoed = [ECHOED] if values[0] is None else []
    return Answer(
        "openai-completions",
        tokens,
        model=named(record, "model"),
        text=named(choice, "text"),
        counts=Counts() if echoed else counts_of(record),
        notes=[*several(record["choices"]), *echoed],
    )


def responses(record: dict) -> Answer:
    """The text of an answer of Responses, whose parts list log-probabilities one by one."""
    parts = [
        part
        for item in record["output"]
        if isinstance(item, dict) and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, dict) and part.get("logprobs")
    ]
    if not parts:
        raise Refusal(
            "This answer of OpenAI's Responses lists no log-probabilities; ask with include: "
            '["message.output_text.logprobs"] and top_logprobs, and open the whole JSON answer.'
        )
    text = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return Answer(
        "openai-responses",
        tokens_of((entry for part in parts for entry in part["logprobs"]), NO_LOGPROBS),
        model=named(record, "model"),
        text=text or None,
        counts=counts_of(record),
    )


def tokens_of(listed: Iterable[dict], otherwise: str) -> list[Written]:
    """The tokens that an answer lists one by one. Raises Refusal with one sentence if there are too few or
    too many, or with `otherwise` if one has another shape.
    """
    try:
        entries = list(listed)
        check_size(len(entries), sum(len(entry.get("top_logprobs") or ()) for entry in entries))
        return [token_of(entry) for entry in entries]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(otherwise) from error


def token_of(entry: dict) -> Written:
    """A token with the alternatives that the server listed."""
    return written(piece(entry), nats(entry["logprob"]), named_of(entry))


def named_of(entry: dict) -> list[tuple[bytes, float | None]]:
    """The alternatives of a token by their bytes."""
    return [(piece(one), nats(one["logprob"])) for one in entry.get("top_logprobs") or []]


def with_draft(tokens: list[Written], given: Any) -> tuple[list[Written], int | None]:
    """The tokens with the draft's likely ones at their places, and how many places the file lists of the
    draft. If there are more or fewer than tokens, nothing says which belong together.
    """
    content = given.get("content") if isinstance(given, dict) else None
    if not content:
        return tokens, None
    if len(content) != len(tokens):
        return tokens, len(content)
    return [token._replace(draft=draft_of(entry)) for token, entry in zip(tokens, content, strict=True)], len(
        content
    )


def draft_of(entry: dict) -> list[Listed]:
    """What the draft had listed at a place: its own token counts too."""
    top, _ = tops(named_of(entry) or [(piece(entry), nats(entry["logprob"]))])
    return top


def rounds_of(metrics: dict) -> list[tuple[int, int]]:
    """(tokens drafted, tokens accepted) by round; empty if the metrics do not list them."""
    if not {"per_step_drafted", "per_step_accepted"} <= set(metrics):
        return []
    drafted, accepted = whole(metrics["per_step_drafted"]), whole(metrics["per_step_accepted"])
    rounds = list(zip(drafted, accepted, strict=True))
    if any(accepted > drafted for drafted, accepted in rounds):
        raise Refusal("This answer contradicts itself: a round accepted more tokens than it drafted.")
    if sum(drafted) > MAX_DRAFTED:
        raise Refusal(
            f"The rounds of this answer drafted {sum(drafted):,} tokens, and {MAX_DRAFTED:,} can be shown; "
            "open a shorter answer."
        )
    return rounds


def metrics_of(record: dict) -> dict:
    """vLLM's metrics of a request; empty if there are none."""
    return inner(inner(record, "metrics"), "speculative_decoding")


def counts_of(record: dict) -> Counts:
    """What an answer counts: its tokens (`usage`), and what was predicted for it or drafted."""
    metrics, timings = metrics_of(record), inner(record, "timings")  # vLLM's, llama.cpp's
    usage = inner(record, "usage")
    details = inner(usage, "completion_tokens_details") or inner(usage, "output_tokens_details")
    total = count(usage.get("completion_tokens", usage.get("output_tokens")))
    accepted, rejected = (
        count(details.get(name)) for name in ("accepted_prediction_tokens", "rejected_prediction_tokens")
    )
    hidden = (count(details.get("reasoning_tokens")) or 0) + (rejected or 0)  # counted, and not in the text
    drafted = (accepted or 0) + (rejected or 0)
    histogram = metrics.get("acceptance_histogram")
    return Counts(
        tokens=None if total is None or hidden > total else total - hidden,
        drafts=count(metrics.get("num_spec_steps")),
        drafted=count(metrics.get("num_draft_tokens", timings.get("draft_n", drafted or None))),
        accepted=count(
            metrics.get(
                "num_accepted_draft_tokens", timings.get("draft_n_accepted", accepted if drafted else None)
            )
        ),
        histogram=tuple(whole(histogram)) if isinstance(histogram, list) else None,
    )


def several(choices: list) -> list[str]:
    """The note on answers that are not shown."""
    return [SEVERAL.format(len(choices))] if len(choices) > 1 else []
