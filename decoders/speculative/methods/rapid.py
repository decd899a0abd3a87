"""RAPID: the same model drafts from a short, retrieved view of the context, and verifies with all of it.

Chen et al. (2025), Long-Context Inference with Retrieval-Augmented Speculative Decoding. Chunks are retrieved
by common words (BM25); the paper uses a sentence encoder, and may let a larger model draft.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.prompt_variant import OtherPrompt
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_length import chain, confident
from decoders.speculative.drafters.draft_model import scores
from decoders.speculative.drafters.retrieved_context import best, bm25, chunked
from decoders.speculative.interfaces import Pair, Source, drafted
from decoders.speculative.verifiers.adjusted_target import adjusted_target

SENTENCE_ENDS = (b".", b"!", b"?", b"\n")
SHORT = Source(
    scores, "a short view", "The target itself guesses, from the chunks of the prompt that match its end."
)


def rapid_pair(parameters: dict) -> Pair:
    """A chain from the short view, and the adjusted target; the plain target at eta = 0."""
    temperature = parameters["temperature"]
    length = confident(parameters["assistant_confidence_threshold"], parameters["num_assistant_tokens"])
    drafter = drafted(SHORT, chain(length, temperature))
    if parameters["eta"] == 0.0:  # the target is not adjusted
        return simplest(drafter, temperature)
    return drafter, adjusted_target(parameters["eta"], parameters["alpha"], temperature)


def retrieved(lane: Lane) -> tuple[list[int], list[int], int]:
    """What the draft reads in place of the prompt; which chunks of how many are in it, counted from 1."""
    prompt, target = lane.trace.prompt, lane.models["target"]
    special = target.special
    head = 1 if prompt[0] in special else 0  # the token with which every text begins
    start = max(head, len(prompt) - lane.parameters["query_tokens"])
    context, asked = prompt[head:start], prompt[start:]
    ends = frozenset(t for t in set(context) if target.bytes_of(t).rstrip(b' "').endswith(SENTENCE_ENDS))
    chunks = chunked(context, lane.parameters["chunk_size"], ends)
    chosen = best(bm25(asked, [context[a:b] for a, b in chunks]), lane.parameters["chunks"])
    short = [t for i in chosen for t in context[slice(*chunks[i])]]
    given = lane.tree.tokens[len(prompt) : lane.tree.trunk]
    return [*prompt[:head], *short, *asked, *given], [i + 1 for i in chosen], len(chunks)


def short_view_note(reads: int, whole: int, chosen: list[int], chunks: int) -> str:
    """What the draft reads, in words."""
    if not chunks:
        return "The prompt is no longer than its end: the draft reads all of it."
    named = ", ".join(map(str, chosen)) or "none"
    return (
        f"The draft reads {reads:,} of the prompt's {whole:,} tokens: its end, and of {chunks} chunks before "
        f"it those that share most with that end: {named}."
    )


@draft_and_verify(
    rapid_pair,
    name="rapid",
    title="RAPID",
    parameters=(
        integer("chunk_size", 32, "Maximum number of tokens in a chunk of the prompt.", low=1, high=512),
        integer("chunks", 4, "Maximum number of chunks that the draft reads.", low=0, high=64),
        integer(
            "query_tokens",
            16,
            "How many tokens at the end of the prompt are the query for chunks.",
            low=1,
            high=256,
        ),
        integer("num_assistant_tokens", 5, "Maximum number of guesses per round.", low=1, high=32),
        real(
            "assistant_confidence_threshold",
            0.1,
            "Drafting stops after a token with a lower probability than this, which is still tested.",
            low=0.0,
            high=1.0,
        ),
        real(
            "eta", 0.0, "How far the target is moved towards the draft; 0 is lossless.", low=0.0, high=100.0
        ),
        real(
            "alpha",
            0.1,
            "Tokens with less than this share of the draft's top probability keep their probability.",
            low=0.0,
            high=1.0,
        ),
        *GREEDY,
    ),
    papers=("long-context-inference-with-retrieval-augmented-speculative",),
)
def rapid(lane: Lane) -> Iterator[None]:
    """The model drafts from a few retrieved chunks of a long prompt and verifies with all of it.

    1. The prompt is split into chunks. Those that share the most rare words with its last query_tokens are
       put before these, in their original order: the short view.
    2. The model reads the short view and drafts from it, with `q`.
    3. From the whole prompt it gives `p`, which is moved towards the draft: `p' = softmax(log p - eta (p -
       q))`, where `q >= alpha max q`.
    4. A token passes with `min(1, p'/q)`. After a rejection a token is drawn from `norm(max(0, p - q, p -
       p'))`; if all pass, one more is drawn from `p`.

    Chunks are compared by their words (BM25), where the paper uses sentence embeddings and a minimum
    similarity. Only the target itself drafts; the paper also lets a larger model draft for a smaller target.

    With eta = 0 the text keeps the target's distribution. Above 0 the target is moved towards the draft where
    the draft is more confident, and the lane says how far its tokens deviate from `p`. A draft forward runs
    the same model: it only saves attention to the rest of a long prompt, so on short prompts nothing is
    gained.
    """
    drafter, verifier = rapid_pair(lane.parameters)
    short, chosen, chunks = retrieved(lane)
    lane.scorers["draft"] = OtherPrompt(lane, short, counts_as="draft")
    lane.note(short_view_note(len(short), lane.tree.trunk, chosen, chunks))
    yield from rounds(lane, drafter, verifier)
