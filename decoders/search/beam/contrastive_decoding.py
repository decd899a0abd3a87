"""Contrastive decoding: an expert's row against an amateur's, among tokens that the expert finds plausible.

Li et al. (2022) subtract log-probabilities; O'Brien and Lewis (2023) weigh logits. The expert is the target,
the amateur the draft model.
"""

from collections.abc import Iterator

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.contrastive.contrast_algebra import Contrast, amplified, ratio
from decoders.sampling.contrastive.contrast_loop import MIX, PLAUSIBLE, badge, token_by_token
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import GREEDY
from decoders.search.beam.beam_state import Beams, close_step

FORMS = ("weighed (2023)", "ratio (2022)")


def combination(parameters: dict) -> Contrast:
    """The contrast that the parameters ask for."""
    if parameters["form"] == FORMS[1]:
        return ratio(parameters["alpha"])
    return amplified(parameters["beta"], parameters["alpha"])


def unusable(parameters: dict) -> str | None:
    """The message to show if the values do not fit together."""
    if parameters["num_beams"] > 1 and parameters["temperature"]:
        return "Beams draw nothing: set temperature to 0, or num_beams to 1."
    return None


@strategy(
    name="contrastive_decoding",
    title="Contrastive decoding",
    family="sampling",
    needs=("target", "draft"),
    parameters=(
        choice(
            "form",
            FORMS[0],
            "(1 + beta) log p - beta log q, or the ratio log p - log q, which has no beta.",
            FORMS,
        ),
        real("beta", 0.5, "Weight of the amateur against the expert.", low=0.0, high=10.0),
        real(
            "alpha",
            0.1,
            "Tokens below this share of the expert's top probability are left out; 0 keeps all.",
            low=0.0,
            high=1.0,
        ),
        real(
            "amateur_temperature",
            1.0,
            "Temperature of the amateur: below 1 it is more confident in its mistakes (2022, GPT-2: 0.5).",
            low=0.01,
            high=100.0,
        ),
        integer(
            "num_beams", 1, "Texts kept at each position (2022: 5); 1: greedy or sampled.", low=1, high=32
        ),
        *GREEDY,
    ),
    together=unusable,
    reads=lambda parameters: {"draft": {Capability.FULL_DISTRIBUTION}},  # whose rows are subtracted
    view="contrast",
    badge=badge,
    parts=lambda parameters: [MIX, PLAUSIBLE],
)
def contrastive_decoding(lane: Lane) -> Iterator[None]:
    """Favours what the large model knows and the small one does not: expert against amateur.

    1. The target gives `p`, the draft `q`, both after the same text.
    2. Only tokens with `p >= alpha max p` stay: where the expert is confident, the amateur has no influence.
    3. Those are scored `(1 + beta) log p - beta log q`, or, in the form of 2022, `log p - log q`.
    4. Processors and the draw, or the argmax, are applied to these scores.

    The paper of 2022 searches with five beams, by the sum of these scores, and with GPT-2 as amateur at
    temperature 0.5. Its released code chooses the candidates of a beam by the expert's sums and scores only
    these; here all tokens that pass the mask compete. The paper of 2023 writes one token at a time.

    Typical mistakes of small models, such as repetition, are penalized. In the form of 2022 the ratio p / q
    alone orders the tokens that stay, however unlikely they are under p, so only the mask keeps the text
    coherent.
    """

    contrast, cooled = combination(lane.parameters), lane.parameters["amateur_temperature"]

    def amateur(nodes: list[int]) -> torch.Tensor:
        return lane.score(nodes, kind="decode", role="draft") / cooled

    if lane.parameters["num_beams"] == 1:
        yield from token_by_token(lane, contrast, lambda: ("draft", amateur([lane.tip])))
        return
    beams = Beams(lane, lane.parameters["num_beams"], added="contrast")
    while beams.live:
        live = beams.live
        expert = lane.score(live)  # [B, V]
        logprobs = lane.distribution(live, expert)
        rows = [lane.constrained(expert, live)]
        if contrast.weights[1]:
            rows.append(amateur(live))
            lane.distribution(live, rows[1], "unwanted", "draft")
        scores = lane.process(contrast.combine(rows), live)
        if not scores.isfinite().any() and not beams.finished:
            for node in live:
                if node != lane.tip:
                    lane.verdict(node, "pruned", reason="no token is left after it")
            lane.ended_by = NOTHING_LEFT
            return
        beams.advance(scores, logprobs)
        close_step(lane, [beams])
        yield
