"""Stochastic beam search: samples several whole texts without replacement.

Kool, van Hoof and Welling (2019), Stochastic Beams and Where to Find Them; a decoder of Language Model
Decoding as Likelihood-Utility Alignment (Josifoski et al. 2022). The bookkeeping is in beam_state.py, the
noise in gumbel.py.
"""

from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.logits.gumbel import perturbed
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import PROCESSORS, SHAPING
from decoders.search.beam.beam_state import Beams, close_step
from decoders.strategy import Part


@strategy(
    name="stochastic_beam",
    title="Stochastic beam search",
    family="search",
    parameters=(
        integer("num_beams", 4, "Texts that are drawn, all different.", low=1, high=64),
        *SHAPING,
    ),
    papers=("language-model-decoding-as-likelihood-utility-alignment",),
    view="beam_tree",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part("frontier", "perturbed beams", "Beams that are ranked by log-probability plus Gumbel noise."),
    ],
)
def stochastic_beam(lane: Lane) -> Iterator[None]:
    """Beam search with Gumbel noise: its texts are samples without replacement; the first is a plain sample.

    phi is the log-probability of a prefix under the processed model, G its perturbed value; phi = G = 0
    for the prompt.

    1. One forward scores all live texts. A child has `phi' = phi + log p` plus its own Gumbel noise:
       `G' = phi' + noise`.
    2. The children's G' are shifted so that the largest is G of their parent, `Z = max G'`:
       `-ln(exp(-G) - exp(-Z) + exp(-G'))`.
    3. The num_beams largest survive or finish; a text's G never grows, so the search is over when no live
       text can still enter the finished ones.

    A text that reaches the limit of new tokens counts as finished. At temperature 0 there is no noise: this
    is beam search by plain sums.
    """
    beams, phi = Beams(lane, lane.parameters["num_beams"], added="noise"), {lane.tip: 0.0}
    while beams.live:
        leaves = beams.live
        logits = lane.score(leaves)
        logprobs = lane.distribution(leaves, logits)  # [B, V]
        shaped = lane.process(logits, leaves)
        if not shaped.isfinite().any(-1).all():
            lane.ended_by = NOTHING_LEFT
            return
        above = torch.tensor([phi[node] for node in leaves])[:, None].to(shaped)
        totals = shaped.double().log_softmax(-1) + above
        beams.advance(increments(lane, beams, totals), logprobs.double())
        rows = {node: totals[i] for i, node in enumerate(leaves)}
        phi = {n: float(rows[lane.tree.parents[n]][lane.tree.tokens[n]]) for n in beams.live}
        close_step(lane, [beams])
        yield


def increments(lane: Lane, beams: Beams, phi: torch.Tensor) -> torch.Tensor:
    """What each child [B, V] adds to its parent's G, from the children's phi [B, V]."""
    totals = torch.tensor(beams.totals, dtype=phi.dtype, device=phi.device)[:, None]
    if not lane.parameters["temperature"]:
        return phi - totals
    at = lane.tree.depths[beams.live[0]] + 1
    rows = [
        perturbed(lane.chooser, total, row, ("sample", at, rank))
        for rank, (total, row) in enumerate(zip(beams.totals, phi, strict=True))
    ]
    return torch.stack(rows) - totals
