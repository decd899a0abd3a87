"""Contrastive decoding: an expert's row against an amateur's, among tokens that the expert finds plausible.

Li et al. (2022) subtract log-probabilities; O'Brien and Lewis (2023) weigh logits. The expert is the target,
the amateur the draft model.
"""

from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.sampling.contrast import Contrast, amplified, ratio
from decoders.sampling.shaping import GREEDY
from decoders.sampling.weighed import MIX, PLAUSIBLE, VIEWS, badge, token_by_token

FORMS = ("weighed (2023)", "ratio (2022)")


def combination(parameters: dict) -> Contrast:
    """The form that is asked for."""
    if parameters["form"] == FORMS[1]:
        return ratio(parameters["alpha"])
    return amplified(parameters["beta"], parameters["alpha"])


@strategy(
    name="contrastive_decoding",
    title="Contrastive decoding",
    family="sampling",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "form", "choice", FORMS[0],
            "(1 + beta) log p - beta log q, or the ratio log p - log q, which has no beta.", choices=FORMS,
        ),
        Parameter("beta", "float", 0.5, "How much the amateur counts against the expert.", 0.0, 10.0),
        Parameter(
            "alpha", "float", 0.1,
            "Tokens with less than this share of the expert's likeliest are left out; 0 keeps all.",
            low=0.0, high=1.0,
        ),
        *GREEDY,
    ),
    views=VIEWS,
    badge=badge,
    parts=lambda parameters: [MIX, PLAUSIBLE],
)  # fmt: skip
def contrastive_decoding(lane: Lane) -> Iterator[None]:
    """What the target knows and the draft does not: the expert's row against the amateur's.

    1. The target gives `p`, the draft `q`, both behind the same text.
    2. Only tokens with `p >= alpha max p` stay: where the expert is sure, the amateur has no say.
    3. Those are scored `(1 + beta) log p - beta log q`, or as of 2022 `log p - log q`.
    4. Processors and the draw, or the argmax, work on these scores.

    Common mistakes of small models, such as going round in circles, are weighed down. As of 2022 the order of
    the tokens that stay does not follow p at all, so the mask is what keeps the text sane.
    """

    def amateur() -> tuple[str, torch.Tensor]:
        return "draft", lane.score([lane.tip], kind="decode", role="draft")

    yield from token_by_token(lane, combination(lane.parameters), amateur)
