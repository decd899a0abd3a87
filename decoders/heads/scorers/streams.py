"""The trained modules of the Parallel Decoder Transformer (Robbins, 2025, section 3) beside a frozen trunk.

Several streams write sections of one answer at the same time. They communicate by notes, small vectors on a
shared bus: a planner writes the first one, and every stream reads notes by cross-attention in the top layers
and writes one at the end of each block.
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

CLOSED = -4.0  # initial value of gates: sigmoid(-4) is 0.018


class Side(nn.Module):
    """The modules beside one layer of the trunk: cross-attention over notes (SNC), and an adapter per
    section.
    """

    def __init__(self, width: int, sections: int, note: int, inner: int, heads: int, bottleneck: int):
        super().__init__()
        self.heads = heads
        self.q, self.out = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        self.k, self.v = (nn.Linear(note, inner, bias=False) for _ in range(2))
        self.sections, self.bottleneck = sections, bottleneck
        self.down = nn.Parameter(torch.randn(sections * bottleneck, width) * width**-0.5)
        self.up = nn.Parameter(torch.randn(sections * bottleneck, width) * 0.02)
        self.note_gate, self.adapter_gate = (nn.Parameter(torch.tensor(CLOSED)) for _ in range(2))

    def noted(
        self, x: torch.Tensor, notes: torch.Tensor, visible: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(`lambda C W_O` [R, T, d] for states x [R, T, d] after self-attention, attention weights [R, T, N]
        on the notes, averaged over heads). notes [R, N, n]; visible [R, T, N]: True where a state may attend.
        """
        read = F.rms_norm(x, x.shape[-1:])
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.q(read), self.k(notes), self.v(notes))
        )
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # [R, heads, T, N]
        weights = scores.masked_fill(~visible[:, None], -torch.inf).softmax(-1)
        context = (weights @ v).transpose(1, 2).flatten(2)
        return self.note_gate.sigmoid() * self.out(context), weights.mean(1)

    def adapted(self, x: torch.Tensor, sections: torch.Tensor) -> torch.Tensor:
        """The adapters' outputs for `sections` [R], to be added to states x [R, T, d] after the feed-forward
        layer.
        """
        read = F.rms_norm(x, x.shape[-1:])
        down, up = (part.view(self.sections, self.bottleneck, -1)[sections] for part in (self.down, self.up))
        return self.adapter_gate.sigmoid() * (F.gelu(read @ down.transpose(1, 2)) @ up)


class ParallelStreams(nn.Module):
    """Planner, notes, side modules of the top layers, coverage and readiness. `settings`: the arguments that
    a file stores to build it again. sections: plan slots S; items: size of the plan vocabulary V_p; note:
    size of a note.
    """

    kind = "streams"
    reads: tuple[int, ...] = ()

    def __init__(
        self,
        target: Target,
        sections: int = 5,
        items: int = 32,
        note: int = 32,
        inner: int = 32,
        heads: int = 4,
        bottleneck: int = 8,
        layers: int = 2,
    ):
        super().__init__()
        layers = min(layers, target.layers)
        self.settings = {
            "sections": sections,
            "items": items,
            "note": note,
            "inner": inner,
            "heads": heads,
            "bottleneck": bottleneck,
            "layers": layers,
        }
        self.sections, self.items, width = sections, items, target.width
        self.first = target.layers - layers  # the lowest layer with side modules, counted from 0
        self.planner = nn.Linear(width, sections * items)
        self.item = nn.Embedding(items, note)
        self.to_note = nn.Linear(note, note, bias=False)
        self.sides = nn.ModuleList(
            Side(width, sections, note, inner, heads, bottleneck) for _ in range(layers)
        )
        self.write = nn.Linear(width, note)
        self.cover = nn.Linear(width, note)
        self.agree = nn.Linear(width + 2 * note + sections, 1)

    def plan(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., S, V_p] of the item in each slot, from the mean [..., d] of the prompt's states."""
        return self.planner(hidden).unflatten(-1, (self.sections, self.items))

    def snapshot(self, plan: torch.Tensor) -> torch.Tensor:
        """The planner's note, snapshot 0 [..., n]: `Norm(mean W E[z_i])` for plan items z [..., S]."""
        return F.layer_norm(self.to_note(self.item(plan)).mean(-2), (self.item.embedding_dim,))

    def written(self, states: torch.Tensor) -> torch.Tensor:
        """The notes [..., n] that streams write at the ends of blocks, from their states [..., d]."""
        return F.layer_norm(self.write(normed(states)), (self.item.embedding_dim,))

    def covered(self, states: torch.Tensor, plan: torch.Tensor) -> torch.Tensor:
        """Coverage logits [..., S] of the plan's items z [..., S], from the streams' states [..., d]."""
        return (self.item(plan) @ self.cover(normed(states))[..., None])[..., 0]

    def ready(
        self, states: torch.Tensor, seen: torch.Tensor, coverage: torch.Tensor, note: torch.Tensor
    ) -> torch.Tensor:
        """Logits [...] of readiness. seen [..., n]: the mean of the visible notes."""
        return self.agree(torch.cat([normed(states), seen, coverage, note], -1))[..., 0]

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """The readiness [B, T] at each token of known texts, as if one stream had written them alone."""
        plan = self.plan(taps.hidden.mean(1)).argmax(-1)
        states, seen = taps.hidden, self.snapshot(plan)[:, None].expand(-1, taps.hidden.shape[1], -1)
        coverage = torch.stack([self.covered(row, plan) for row in states.unbind(1)], 1)
        return self.ready(states, seen, coverage, self.written(states)).sigmoid()

    def gates(self) -> list[tuple[int, float, float]]:
        """(layer, gate of its notes, gate of its adapters) for each layer with side modules; gates are in [0,
        1].
        """
        return [
            (self.first + at, side.note_gate.sigmoid().item(), side.adapter_gate.sigmoid().item())
            for at, side in enumerate(self.sides)
        ]


def normed(states: torch.Tensor) -> torch.Tensor:
    """States [..., d] scaled to unit size."""
    return F.rms_norm(states, states.shape[-1:])


def window(notes: Sequence[tuple[int, int]], round_: int, delay: int, budget: int) -> list[int]:
    """The indices of the notes that are visible in a round: the `budget` most recent among snapshot 0 and the
    notes of rounds u <= round_ - delay. notes: (round, stream) of each, oldest first; the snapshot has round
    0 and no delay.
    """
    seen = [at for at, (u, _) in enumerate(notes) if not u or u <= round_ - delay]
    return seen[-budget:]


def rolled_back(readiness: Sequence[float], gamma: float) -> list[int]:
    """The indices of the streams that write their block again: those whose readiness is not above gamma."""
    return [at for at, ready in enumerate(readiness) if not ready > gamma]
