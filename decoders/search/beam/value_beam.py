"""Value-guided and conditional beam search: ranks prefixes by a scorer's value together with their
likelihood.

Language Model Decoding as Likelihood-Utility Alignment (Josifoski et al. 2022) weighs the two; Making the
Most of your Model (2024) treats the scorer's value as the probability of an attribute and multiplies. The
scorers are in scorers.py, the bookkeeping in beam_state.py.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import PENALTIES
from decoders.search.beam.beam_state import EARLY_STOPPING, LENGTH_PENALTY, Beams, close_step
from decoders.search.shaped import shaped
from decoders.search.stepwise import scorers
from decoders.strategy import Part

COMBINE = {
    "weighed sum": "Ranked by c log p + (1 - c) V, c the likelihood_weight.",
    "product": "Ranked by log p + log V: V is the probability that the text will have an attribute.",
}
MIN_VALUE = 1e-9  # in place of 0, whose logarithm would rule out a text


@strategy(
    name="value_beam",
    title="Value-guided beam search",
    family="search",
    parameters=(
        *scorers.SCORER,
        scorers.NOISE,
        integer("num_beams", 5, "Hypotheses kept at each position.", low=1, high=32),
        integer("candidates", 10, "How many of each text's most likely tokens are scored.", low=1, high=64),
        choice("combine", "weighed sum", "How likelihood and value are combined.", COMBINE),
        real(
            "likelihood_weight",
            0.1,
            "For the weighted sum: 1 is the likelihood only, 0 the scorer only.",
            low=0.0,
            high=1.0,
        ),
        replace(LENGTH_PENALTY, default=0.0),
        EARLY_STOPPING,
        *PENALTIES,
    ),
    together=scorers.unusable,
    suits=scorers.unscored,
    papers=(
        "language-model-decoding-as-likelihood-utility-alignment",
        "making-the-most-of-your-model",
    ),
    view="beam_tree",
    badge=lambda parameters: "sampled" if parameters["value_noise"] else "deterministic",
    parts=lambda parameters: [
        Part("frontier", "beams", "The num_beams best live texts; their most likely continuations compete."),
        Part("rank", parameters["combine"], COMBINE[parameters["combine"]]),
        scorers.part(parameters),
    ],
)
def value_beam(lane: Lane) -> Iterator[None]:
    """Beam search that ranks texts by likelihood and a scorer's value.

    1. One forward scores all live texts; the `candidates` most likely tokens of each are considered.
    2. The scorer gives each prefix s a value V from 0 to 1, and its rank comes from `c log p(s) + (1 - c)
       V(s)`, c the likelihood_weight; or, where V is the probability that the finished text will have an
       attribute a, from the product: `log p(s) + log p(a | s)`. V is computed again for every prefix and
       never added up.
    3. The num_beams best survive, the others are pruned; a text that ends goes to the finished ones. With
       early_stopping "never" the search ends once no live text could enter these even if its value became 1.

    With penalties and forbidden words p is the model as these processors leave it.

    With c = 1, or a constant V, it is beam search over the most likely tokens. Noise on the values shows
    how good a scorer has to be before it helps.
    """
    scorer, given = scorers.Scorer(lane), lane.parameters
    # a continuation loses likelihood, yet its value may rise to 1
    beams = Beams(
        lane, given["num_beams"], added="value", bound=lambda logprob: rank_value(given, logprob, 1.0)
    )
    begin = rank_value(given, 0.0, scorer.score(lane.tip, whole=False))
    beams.totals, beams.penalties = [begin], [-begin]
    while beams.live:
        leaves = beams.live
        own, logprobs = shaped(lane, leaves, lane.score(leaves))  # [B, V]
        scores, born = torch.full_like(logprobs, -torch.inf, dtype=torch.float64), {}
        top = logprobs.topk(min(given["candidates"], logprobs.shape[-1]), dim=-1)
        last = beams.length + 1 == lane.budget
        for row, (leaf, tokens) in enumerate(zip(leaves, top.indices.tolist(), strict=True)):
            likely = beams.totals[row] + beams.penalties[row]  # log p of the prefix
            for slot, token in enumerate(tokens):
                logprob = float(logprobs[row, token])
                node = born[leaf, token] = lane.propose(leaf, token, logprob, slot=slot)
                value = scorer.score(node, whole=last or token in lane.eos)
                scores[row, token] = rank_value(given, likely + logprob, value) - beams.totals[row]
        beams.advance(scores, own.double(), born)
        close_step(lane, [beams])
        yield


def rank_value(given: dict, logprob: float, value: float) -> float:
    """The number by which a prefix is ranked: see COMBINE."""
    if given["combine"] == "product":
        return logprob + math.log(max(value, MIN_VALUE))
    c = given["likelihood_weight"]
    return c * logprob + (1 - c) * value
