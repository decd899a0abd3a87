"""CLaSp: after each verification, the target's own states say which layers the next drafts can skip.

Chen et al. (2025), CLaSp. Dynamic programming over layers and numbers of skipped layers; which of two
candidates a cell keeps is decided by their cosine to the whole model's state after that layer.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch.nn import functional as F

from decoders.engine.layers import Layers, spans
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.confidence_stopping import confident_chain
from decoders.speculative.interfaces import Draft, Drafter, Pair, Seen, Verification
from decoders.speculative.self_draft.early_layers import depth_of, self_drafted
from decoders.trace.scores import ScoreName


def plan(
    streams: torch.Tensor, run: Callable[[int, torch.Tensor], torch.Tensor], max_skipped: int
) -> tuple[list[int], float, list[dict[int, float]]]:
    """The `max_skipped` layers (from 0) without which a state stays closest to that of the whole model; the
    cosine at the end; and the table: after each layer, number of skipped layers -> cosine of the best state.

    streams [L + 1, d]: the state after 0 to L layers. run(layer, states [n, d]): the layer's output for other
    states at the same position. `g[j]` is the best state so far with j layers skipped.
    """
    g, choices, table = {0: streams[0]}, [], []
    for layer, goal in enumerate(streams[1:]):
        ran = dict(zip(g, run(layer, torch.stack(list(g.values()))), strict=True))
        kept, skipped = {}, {}
        for j in range(min(layer + 1, max_skipped) + 1):
            a, b = ran.get(j), g.get(j - 1)
            skipped[j] = a is None or (b is not None and bool(cosine(b, goal) > cosine(a, goal)))
            kept[j] = b if skipped[j] else a
        choices.append(skipped)
        table.append({j: float(cosine(state, goal)) for j, state in kept.items()})
        g = kept
    skipped_layers, j = [], max_skipped
    for layer in range(len(choices) - 1, -1, -1):
        if choices[layer][j]:
            skipped_layers.append(layer)
            j -= 1
    return skipped_layers[::-1], table[-1][max_skipped], table


def cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The cosine of the angle between two states [d]."""
    return F.cosine_similarity(a.double(), b.double(), dim=0)


def planning(parameters: dict) -> Drafter:
    """A drafter that leaves out the planned layers, and plans again every `replan_every` tokens."""
    skipped: list[int] | None = None
    planned_at = 0

    def layers(lane: Lane) -> Layers:
        total = depth_of(lane.models["target"])
        return Layers.without(skipped, skipped, total)

    inner = self_drafted(
        layers,
        confident_chain(
            parameters["num_assistant_tokens"], parameters["threshold"], parameters["temperature"]
        ),
        "the planned layers",
        "The target guesses without the layers that its own states show to be dispensable.",
    )

    def propose(lane: Lane) -> Draft:
        lane.scorers["target"].taps = True
        return Draft(lane.tip) if skipped is None else inner.propose(lane)

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        nonlocal skipped, planned_at
        node = (
            verification.path[-1] if verification.path else draft.root
        )  # the last one that all layers have read
        due = skipped is None or lane.written - planned_at >= parameters["replan_every"]
        if not lane.more or not due or node < lane.tree.trunk:
            return
        streams, total = lane.scorers["target"].streams(node), depth_of(lane.models["target"])
        max_skipped = min(parameters["skip_layers"], total - 1)
        parent, token = lane.tree.parents[node], lane.tree.tokens[node]
        copies = [lane.tree.add(parent, token) for _ in range(max_skipped + 1)]
        run = lambda i, states: lane.through(copies[: len(states)], i, states)
        skipped, close, table = plan(streams, run, max_skipped)
        lane.drop(copies)
        planned_at = lane.written
        for layer, row in enumerate(table):
            taken, level = sum(i <= layer for i in skipped), f"layer {layer + 1}"
            lane.record_table(node, ScoreName.COSINE, row[taken], row, "skipped", level=level, chosen=taken)
        lane.record_measure(node, ScoreName.COSINE, close, level="adopted")
        lane.note(
            f"Skips layers {spans(skipped)} of {total} from now on; cosine to the full model: {close:.3f}."
        )

    return replace(inner, propose=propose, observe=observe)


@speculative(
    name="clasp",
    title="CLaSp",
    parameters=(
        integer("skip_layers", 3, "Layers that a draft leaves out.", low=0, high=256),
        integer("num_assistant_tokens", 8, "Maximum length of a draft.", low=1, high=32),
        real("threshold", 0.6, "Drafting ends where the confidence is below this.", low=0.0, high=1.0),
        integer("replan_every", 16, "New tokens between two plans.", low=1, high=1024),
        *GREEDY,
    ),
    papers=("clasp",),
    view="layers",
)
def clasp_pair(parameters: dict) -> Pair:
    """Drafts with some layers skipped; the last accepted token's states decide which ones.

    1. A forward of all layers leaves the state of the last accepted token after each layer, `x_0` to `x_L`.
    2. A table of states is filled layer by layer: `g(i, j)`, after i layers of which j were skipped, is
       `g(i-1, j)` run through layer i or `g(i-1, j-1)` unchanged, whichever has the larger cosine to `x_i`.
    3. Backtracking from `g(L, skip_layers)` gives the layers that drafts leave out.
    4. The remaining layers draft until their confidence falls below threshold; all layers check, so the text
       is exactly the target's.
    5. The plan is made again every replan_every tokens. Planning runs each layer once, on a few states.

    The first two tokens are written without a draft, since there is no plan yet.
    """
    return simplest(planning(parameters), parameters["temperature"])
