"""SGLang's own endpoint /generate: `meta_info` with the log-probabilities as triples (log-probability, id,
text), and the counts of speculation.
"""

from decoders.refusal import Refusal
from decoders.trace.imports.answer import Answer, Counts, check_size, count, named, nats, whole, written

NO_LOGPROBS = (
    "This answer of SGLang's own endpoint lists no log-probabilities; ask with return_logprob: true, "
    "top_logprobs_num and return_text_in_logprobs: true, and open the whole JSON answer."
)
IDS = (
    "The file names tokens by their ids alone (⟨7⟩): ask with return_text_in_logprobs: true to see their "
    "texts."
)


def fits(record: dict) -> bool:
    """Whether a record is an answer of /generate."""
    return isinstance(record.get("meta_info"), dict)


def read(record: dict) -> Answer:
    """The answer. Raises Refusal with one sentence if it lists no log-probabilities."""
    facts = record["meta_info"]
    try:
        own = facts["output_token_logprobs"]
        likely = facts.get("output_top_logprobs") or [None] * len(own)
        check_size(len(own), sum(len(one or ()) for one in likely))
        tokens = [
            written(name_of(one), nats(one[0]), ((name_of(other), nats(other[0])) for other in top or ()))
            for one, top in zip(own, likely, strict=True)
        ]
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(NO_LOGPROBS) from error
    texts = all(isinstance(one[2], str) for one in own if len(one) > 2) and len(own[0]) > 2
    return Answer(
        "sglang",
        tokens,
        model=named(facts, "model") or named(record, "model"),
        text=named(record, "text") if texts else None,
        counts=counts_of(record),
        notes=[] if texts else [IDS],
    )


def counts_of(record: dict) -> Counts:
    """What an answer counts: its tokens, and of speculation the rounds (verifications) and tokens."""
    facts = record["meta_info"]
    histogram = facts.get("spec_accept_histogram")
    return Counts(
        tokens=count(facts.get("completion_tokens")),
        drafts=count(facts.get("spec_verify_ct")),
        drafted=count(facts.get("spec_draft_token_num")),
        accepted=count(facts.get("spec_accept_token_num", facts.get("spec_accepted_tokens"))),
        histogram=tuple(whole(histogram)) if isinstance(histogram, list) else None,
    )


def name_of(triple: list) -> bytes:
    """The text of a token, or its id."""
    text = triple[2] if len(triple) > 2 else None
    return f"⟨{triple[1]}⟩".encode() if text is None else text.encode()
