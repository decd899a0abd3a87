"""Classifier-free guidance: away from what the model would write without the prompt.

Sanchez et al. (2023) for language models; Kornblith et al. (2023) for captions. The latter also fine-tune the
model with the condition dropped, which is not implemented here. The result equals that of transformers'
`generate`.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import free_text, real
from decoders.prompt_variant import read_instead
from decoders.registry import strategy
from decoders.sampling.contrastive.contrast_algebra import guided
from decoders.sampling.contrastive.contrast_loop import MIX, subtracts_target, token_by_token
from decoders.sampling.sampling_parameters import GREEDY

TITLE = "negative prompt"


def negative(lane: Lane) -> list[int]:
    """The tokens that the unconditional view reads: the negative prompt, or the prompt's last token if that
    is empty.
    """
    text = lane.parameters["negative_prompt"]
    return lane.models["target"].encode(text) if text else lane.trace.prompt[-1:]


@strategy(
    name="guidance",
    title="Classifier-free guidance",
    family="sampling",
    parameters=(
        real(
            "guidance_scale",
            1.5,
            "Weight of the prompt: 1 is the model unchanged, 0 ignores the prompt.",
            low=0.0,
            high=20.0,
        ),
        free_text(
            "negative_prompt",
            "",
            "What the second view reads in place of the prompt; empty: only the prompt's last token.",
        ),
        *GREEDY,
    ),
    reads=subtracts_target,
    view="contrast",
    badge=lambda p: "equal to generate" if p["temperature"] == 0.0 else "contrasted",
    parts=lambda parameters: [MIX],
)
def guidance(lane: Lane) -> Iterator[None]:
    """Amplifies what the prompt makes more likely: logits with the prompt against logits without it.

    1. The model reads the text twice: after the prompt, `z_c`, and after a negative prompt, `z_u`.
    2. The difference is amplified: `z = z_u + guidance_scale (z_c - z_u)`.
    3. Processors and the draw, or the argmax, are applied to z. The token is appended to both.

    With a guidance_scale above 1 the prompt counts for more than it does in the model itself, and tokens that
    the negative prompt makes likely are avoided. Guidance takes two forwards per token, or one if
    guidance_scale is 1, and keeps two KV caches.
    """
    contrast = guided(lane.parameters["guidance_scale"])
    if contrast.weights[1] and not read_instead(lane, TITLE, negative(lane)):
        return
    yield from token_by_token(lane, contrast, lambda: (TITLE, lane.score([lane.tip], role=TITLE)))
