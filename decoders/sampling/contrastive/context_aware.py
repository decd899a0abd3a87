"""Context-aware decoding: amplifies what a piece of evidence in the prompt adds.

Xu (2023), Context-aware Decoding Reduces Hallucination in Query-focused Summarization, with the rule of Shi
et al. (2023). The second view is the same prompt with the evidence left out; the question stays.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import free_text, real
from decoders.prompt_variant import read_instead
from decoders.registry import strategy
from decoders.sampling.contrastive.contrast_algebra import amplified
from decoders.sampling.contrastive.contrast_loop import MIX, badge, subtracts_target, token_by_token
from decoders.sampling.contrastive.prompt_split import head, last_part
from decoders.sampling.sampling_parameters import GREEDY

TITLE = "without the context"
NOT_THERE = (
    "The context does not occur in the prompt; copy it from there, character by character, or leave it "
    "empty to take everything before the prompt's last line."
)


def without_context(lane: Lane) -> list[int] | None:
    """The prompt's tokens without the evidence. The evidence is the text in the parameter; if that is empty,
    it is everything before the last line (or the last sentence, if there is only one line). None if the
    prompt does not contain the text.
    """
    prompt, target, context = lane.trace.prompt, lane.models["target"], lane.parameters["context"]
    start = head(prompt, target.special)
    if not context:
        cut = start + last_part(prompt[start:], target.bytes_of)
        left = [*prompt[:start], *prompt[cut:]]
        return left if cut > start else prompt[-1:]
    text = b"".join(map(target.bytes_of, prompt[start:]))
    before, context_found, after = text.partition(context.encode())
    if not context_found:
        return None
    rest = (before + after).decode("utf-8", "replace")
    return [*prompt[:start], *target.cut(rest)] or prompt[-1:]


@strategy(
    name="context_aware",
    title="Context-aware decoding",
    family="sampling",
    parameters=(
        real(
            "alpha",
            0.5,
            "How much the effect of the context is amplified; 0: not at all.",
            low=0.0,
            high=10.0,
        ),
        free_text(
            "context",
            "",
            "The part of the prompt that is the context, copied word for word; empty: everything before the "
            "last line, or before the last sentence of a prompt of one line.",
        ),
        *GREEDY,
    ),
    reads=subtracts_target,
    view="contrast",
    badge=badge,
    parts=lambda parameters: [MIX],
)
def context_aware(lane: Lane) -> Iterator[None]:
    """Amplifies what the context adds: logits with the context against logits without it.

    1. The model reads the whole prompt, `z`, and the prompt with the context left out, `z_0`.
    2. The difference that the context makes is amplified: `z' = (1 + alpha) z - alpha z_0`.
    3. Processors and the draw, or the argmax, are applied to z'. The token is appended to both.

    Where the context contradicts what the model has learnt, the context wins more often. There is no
    plausibility mask: with a large alpha, tokens can win that neither view finds likely. Two forwards per
    token, one at alpha 0.
    """
    contrast = amplified(lane.parameters["alpha"])
    if contrast.weights[1]:
        reads = without_context(lane)
        if reads is None:
            lane.ended_by = NOT_THERE
            return
        if not read_instead(lane, TITLE, reads):
            return
        lane.note(f"Without the context the model reads {len(reads):,} of {len(lane.trace.prompt):,} tokens.")
    yield from token_by_token(lane, contrast, lambda: (TITLE, lane.score([lane.tip], role=TITLE)))
