"""llama.cpp's own endpoint /completion, asked with n_probs, in both of its shapes: `probs` (up to the end of
2024) lists probabilities by text, `top_logprobs` log-probabilities, or `top_probs` probabilities after the
samplers (`post_sampling_probs`).
"""

from typing import Any

from decoders.refusal import Refusal
from decoders.trace.imports.answer import (
    LOGPROBS,
    PROBABILITIES,
    Answer,
    Counts,
    Written,
    check_size,
    count,
    inner,
    log_of,
    named,
    nats,
    piece,
    written,
)

NO_PROBS = (
    "This answer of llama.cpp's own endpoint lists no probabilities; ask with n_probs, such as 10, and open "
    "the whole JSON answer."
)


def fits(record: dict) -> bool:
    """Whether a record is an answer of /completion."""
    return "completion_probabilities" in record or {"content", "timings"} <= record.keys()


def read(record: dict) -> Answer:
    """The answer. Raises Refusal with one sentence if it lists no probabilities."""
    places = record.get("completion_probabilities")
    if not places:
        raise Refusal(NO_PROBS)
    try:
        check_size(len(places), sum(len(likely(entry)) for entry in places))
        tokens = [token_of(entry) for entry in places]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(NO_PROBS) from error
    # n_probs are of the whole vocabulary, before any sampler, unless they are asked for after all of them.
    processed = "top_logprobs" not in places[0]
    return Answer(
        "llama-server",
        tokens,
        model=named(record, "model"),
        prompt=named(record, "prompt"),
        text=named(record, "content"),
        scale=PROBABILITIES if processed else LOGPROBS,
        processed=processed,
        counts=counts_of(record),
    )


def counts_of(record: dict) -> Counts:
    """What an answer counts: its tokens, and the drafted and accepted ones, without rounds."""
    timings = inner(record, "timings")
    return Counts(
        tokens=count(record.get("tokens_predicted", timings.get("predicted_n"))),
        drafted=count(timings.get("draft_n")),
        accepted=count(timings.get("draft_n_accepted")),
    )


def likely(entry: dict) -> list[dict]:
    """The likely tokens of a place, in any of the shapes."""
    return entry.get("top_logprobs") or entry.get("top_probs") or entry.get("probs") or []


def token_of(entry: dict) -> Written:
    """A place: its token, and the likely ones. The old shape names the token by its text alone: its
    probability is that of the listed token with this text.
    """
    top = [named_of(one) for one in likely(entry)]
    if "token" in entry:
        return written(*named_of(entry), top)
    own = entry["content"].encode()
    return written(own, next((value for name, value in top if name == own), None), top)


def named_of(entry: dict) -> tuple[bytes, float | None]:
    """A listed token's bytes and log-probability."""
    if "tok_str" in entry:
        return entry["tok_str"].encode(), log_of(entry["prob"])
    return piece(entry), number(entry)


def number(entry: dict) -> Any:
    """The log-probability of an entry that has either number."""
    return nats(entry["logprob"]) if "logprob" in entry else log_of(entry["prob"])
