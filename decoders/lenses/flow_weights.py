"""The importances of information flow routes: how much each summand of a state helps to build it.

The L1 norm, thresholds before heads are summed, and renormalising are the paper's. Ours are the details that
it leaves open: a state none of whose parts helps comes entirely from its own residual stream, the output bias
is a part, and parallel blocks and norms after blocks are split too. The route is walked in
visualizers/graphs/flow_routes.py.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from decoders.lenses.frame import LensFrame, level_names
from decoders.lenses.tape import LayerTape, Tape, record
from decoders.logits.distributions import log_softmax, summarise
from decoders.trace.events import Depend, Distribution

PROMOTED = 5  # tokens that a node's distribution names


@dataclass(frozen=True, eq=False)
class Flow:
    """What each position's states are made of, L layers, H heads, T positions; all weights from 0 to 1.

    Of x_mid: attention + residual + bias = 1 per layer and position. Of x_post: mlp + mid = 1. Blocks in
    parallel have one sum for x_post, of all but `mid`.
    """

    attention: torch.Tensor  # [L, H, T, T]: what head h brings position i (row) from position j
    residual: torch.Tensor  # [L, T] the stream itself
    bias: torch.Tensor  # [L, T] the attention's output bias, which comes from no position
    mlp: torch.Tensor  # [L, T]
    mid: torch.Tensor  # [L, T] x_mid in x_post; 0 in parallel blocks
    parallel: bool

    @property
    def by_source(self) -> torch.Tensor:
        """[L, T, T]: what position i gets from position j, all heads together."""
        return self.attention.sum(1)

    def over(self, tau: float, renormalise: bool = True) -> "Flow":
        """These weights without those of at most `tau`. If renormalised, parts are dropped head by head, and
        the others of a state then sum to 1 again; otherwise an edge is dropped with all its heads, by their
        sum.
        """
        if not renormalise:
            kept = self.attention * (self.by_source > tau)[:, None]
            return replace(self, attention=kept, **{n: cut(getattr(self, n), tau) for n in VECTORS})
        parts = {name: cut(getattr(self, name), tau) for name in ("attention", *VECTORS)}
        mids = parts["attention"].sum((1, 3)) + parts["residual"] + parts["bias"]  # [L, T]
        posts = parts["mlp"] + parts["mid"]
        if self.parallel:
            mids = posts = mids + posts
        into = {"mlp": posts, "mid": posts, "residual": mids, "bias": mids}
        into["attention"] = mids[:, None, :, None]
        return replace(self, **{name: part / into[name].clamp(min=1e-12) for name, part in parts.items()})

    def tokens(self) -> torch.Tensor:
        """R [T, T]: how much of each position's last state comes from each token, rows summing to 1: the
        product of all layers' weights between positions, a position's own residual, bias and MLP counted as
        its own (reconstructed, after ALTI).
        """
        result = torch.eye(self.residual.shape[1], dtype=self.residual.dtype)
        for layer, by_source in enumerate(self.by_source):
            own = torch.diag(self.residual[layer] + self.bias[layer])
            step = by_source + own  # [T, T]
            if self.parallel:
                step = step + torch.diag(self.mlp[layer])
            else:
                step = self.mid[layer][:, None] * step + torch.diag(self.mlp[layer])
            result = step @ result
        return result


VECTORS = ("residual", "bias", "mlp", "mid")


def cut(weights: torch.Tensor, tau: float) -> torch.Tensor:
    """Zero where a weight is at most `tau`."""
    return torch.where(weights > tau, weights, 0.0)


def importances(parts: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    """How much each of the vectors z [..., N, d] helps to build their sum y [..., d], summing to 1: [..., N].

    max(0, |y| - |z - y|) in the L1 norm, over the sum of all of these; zeros where no part helps.
    """
    far = (parts - whole[..., None, :]).abs().sum(-1)
    near = (whole.abs().sum(-1, keepdim=True) - far).clamp(min=0.0)
    return near / near.sum(-1, keepdim=True).clamp(min=1e-30)


def flow_of(tape: Tape) -> Flow:
    """The importances of all positions of a tape with layers."""
    layers = [layer_flow(layer) for layer in tape.layers]
    stacked = {name: torch.stack([layer[name] for layer in layers]) for name in ("attention", *VECTORS)}
    return Flow(**stacked, parallel=tape.layers[0].parallel)


def layer_flow(layer: LayerTape) -> dict[str, torch.Tensor]:
    """The weights of one layer, position after position: never more than one position's parts are held."""
    heads, count, _ = layer.pattern.shape
    attention = layer.pre.new_zeros(heads, count, count)
    rows: dict[str, list[torch.Tensor]] = {name: [] for name in VECTORS}
    zero = torch.zeros_like(layer.pre[0])
    for at in range(count):
        pre, mlp, bias = layer.pre[at], layer.mlp[at], layer.bias_part(at)
        own = [pre, zero if bias is None else bias, *([mlp] if layer.parallel else [])]
        whole = layer.post[at] if layer.parallel else layer.mid[at]
        parts = torch.cat([layer.head_parts(at).flatten(0, 1), torch.stack(own)])  # [H (at + 1) + 2 or 3, d]
        weights = with_residual(importances(parts, whole), heads * (at + 1))
        attention[:, at, : at + 1] = weights[: heads * (at + 1)].view(heads, at + 1)
        residual, bias_weight, *more = weights[heads * (at + 1) :]
        if not layer.parallel:
            more = with_residual(importances(torch.stack([mlp, whole]), layer.post[at]), 1)
        for name, weight in zip(VECTORS, [residual, bias_weight, *more, pre.new_zeros(())], strict=False):
            rows[name].append(weight)
    return {"attention": attention, **{name: torch.stack(values) for name, values in rows.items()}}


def with_residual(weights: torch.Tensor, residual: int) -> torch.Tensor:
    """The weights [N], all on the residual part where no part helps."""
    if not weights.any():
        weights = weights.clone()
        weights[residual] = 1.0
    return weights


def flow_frame(model: Any, tokens: list[int], positions: int) -> LensFrame:
    """What the last `positions` positions of a text are made of."""
    tape = record(model.model, tokens, layers=True)
    routes, levels = flow_of(tape), level_names(tape.depth)
    first = max(0, len(tokens) - positions)
    events = [*readouts(tape, levels, first), *token_edges(routes, first)]
    attended = torch.stack([layer.pattern for layer in tape.layers])
    data, title = {"flow": routes, "pattern": attended, "first": first}, "Information flow routes"
    return LensFrame("flow", title, tokens, levels, events, [tape.forward], says(routes), data=data)


def readouts(tape: Tape, levels: list[str], first: int) -> list[Distribution]:
    """What states, attentions and MLPs say through the last norm and head, of the positions from `first` on.
    Of a block: the tokens that its output promotes.
    """
    events = []
    for at, level in enumerate(levels):
        vectors = {"state": tape.streams[at]}
        if at:
            vectors |= {"attention": tape.layers[at - 1].attended, "mlp": tape.layers[at - 1].mlp}
        for view, rows in vectors.items():
            logits = tape.logits[first:] if view == "state" and at == tape.depth else tape.read(rows[first:])
            for place, (top, rest, entropy) in enumerate(summarise(log_softmax(logits), PROMOTED), first):
                events.append(Distribution(place, view, top, rest, entropy, level))
    return events


def token_edges(routes: Flow, first: int) -> list[Depend]:
    """How much of each position comes from each token, of the positions from `first` on."""
    shares = routes.tokens().tolist()
    return [
        Depend(source, target, shares[target][source], "flow")
        for target in range(first, len(shares))
        for source in range(target + 1)
    ]


def says(routes: Flow) -> str:
    """The main thing about a text's last position in one sentence."""
    if routes.parallel:
        attention, mlp = routes.attention[:, :, -1].sum() / len(routes.mlp), routes.mlp[:, -1].mean()
    else:
        attention = (routes.mid[:, -1] * routes.attention[:, :, -1].sum((1, 2))).mean()
        mlp = routes.mlp[:, -1].mean()
    layer, head = divmod(int(routes.attention[:, :, -1].sum(-1).argmax()), routes.attention.shape[1])
    return (
        f"At the last position a layer adds {float(attention):.0%} by attention and {float(mlp):.0%} by its "
        f"MLP on average, and keeps the rest; head {head + 1} of layer {layer + 1} contributes most."
    )
