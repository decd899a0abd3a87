"""Language model guidance: a second model's style, and from the target only what the prompt adds.

Kornblith et al. (2023), Guiding Image Captioning Models Toward More Specific Captions; here the condition is
the prompt, and the language model is the draft.
"""

from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import free_text, real
from decoders.prompt_variant import read_instead
from decoders.registry import strategy
from decoders.sampling.contrastive.classifier_free_guidance import TITLE, negative
from decoders.sampling.contrastive.contrast_algebra import styled
from decoders.sampling.contrastive.contrast_loop import MIX, badge, subtracts_target, take
from decoders.sampling.sampling_parameters import GREEDY

STYLE = "style"
BETWEEN = "\n\n"  # what stands between two examples of a style


def newlines(lane: Lane) -> list[int]:
    """The tokens with which a line ends."""
    draft = lane.models["draft"]
    words = ((token, draft.bytes_of(token)) for token in range(draft.engine.vocabulary))
    return [token for token, word in words if word[:1] == b"\n"]


def ended(row: torch.Tensor, ends: list[int], eos: list[int]) -> torch.Tensor:
    """A row [1, V] whose mass on tokens `ends` is on the end of the text instead."""
    logs = log_softmax(row).clone()
    mass = logs[:, ends + eos].logsumexp(-1)
    logs[:, ends + eos] = -torch.inf
    logs[:, eos[0]] = mass
    return logs


@strategy(
    name="lm_guidance",
    title="Language model guidance",
    family="sampling",
    needs=("target", "draft"),
    parameters=(
        real(
            "condition_weight",
            1.0,
            "Weight of the target's log-probabilities after the prompt.",
            low=0.0,
            high=20.0,
        ),
        real(
            "unconditional_weight",
            0.6,
            "Weight of the target's log-probabilities without the prompt, which are subtracted; smaller "
            "than the other.",
            low=0.0,
            high=20.0,
        ),
        free_text(
            "negative_prompt",
            "",
            "What the target reads in place of the prompt; empty: only the prompt's last token.",
        ),
        free_text(
            "style",
            "",
            "What the draft reads in place of the prompt, such as examples separated by empty lines, where "
            "a line break then ends the text; empty: the prompt.",
        ),
        *GREEDY,
    ),
    papers=("guiding-image-captioning-models-toward-more-specific",),
    reads=subtracts_target,
    view="contrast",
    badge=badge,
    parts=lambda parameters: [MIX],
)
def lm_guidance(lane: Lane) -> Iterator[None]:
    """The draft's distribution, shifted by what the prompt changes in the target.

    1. The draft gives `q`, after examples of a style; if these are separated by empty lines, a line break
       counts as the end of the text.
    2. The target reads the text after the prompt, `p_c`, and after a negative prompt, `p_u`.
    3. The scores are `log q + a log p_c - b log p_u`, with a the condition_weight and b the
       unconditional_weight. Processors and the draw, or the argmax, are applied to these.

    With a = b the target contributes only what the prompt changes; with a > b it also contributes some of its
    own style. Each token takes three forwards, one of them the draft's.
    """
    given = lane.parameters
    contrast = styled(given["condition_weight"], given["unconditional_weight"])
    if not read_instead(lane, TITLE, negative(lane)):
        return
    examples = lane.models["draft"].encode(given["style"]) if given["style"] else lane.trace.prompt
    if not read_instead(lane, STYLE, examples, "draft"):
        return
    eos = sorted(lane.eos)
    ends = newlines(lane) if BETWEEN in given["style"] and eos else []
    while lane.more:
        wanted, without = lane.score([lane.tip]), lane.score([lane.tip], role=TITLE)
        style = lane.score([lane.tip], role=STYLE)
        style = ended(style, ends, eos) if ends else style
        if take(lane, contrast, wanted, [(TITLE, without)], [(STYLE, style)]) is None:
            return
        yield
