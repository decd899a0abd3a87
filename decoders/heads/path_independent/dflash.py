"""DFlash's drafter (Chen et al., 2026): a block of masks that reads the target's states as keys and values.

    c_i = norm(W_f [a_i; b_i; c_i])        the residual stream after the layers `reads`, at token i <= n
    x = E[token n + 1, MASK, ..., MASK]    a block of b entries at positions n + 1 to n + b
    in every layer: the queries of norm(x); keys and values of c at 0 to n and of norm(x), both by the
    layer's own matrices; each entry sees all c and the whole block
    logits of token n + 1 + k = H norm(x_k), k = 1 to b - 1        H, E: the target's

As in the authors' code and in the library speculators. c passes through no layer: its keys and values are
computed once and kept.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import nn

from decoders.heads.feature_drafters.eagle3 import over_all_tokens
from decoders.heads.parts.layers import Attention, DecoderLayer, LayerForm, at_angles
from decoders.heads.parts.module import ALL, DraftModule, Sees, cross_entropy, some_rows
from decoders.heads.parts.taps import Taps, Target

GAMMA = 4.0  # depth k has weight exp(-(k - 1) / GAMMA) in the loss: the paper's for blocks of 8
READS = 3
EVERY = 8  # one row in so many begins a block in the loss

Held = tuple[torch.Tensor, torch.Tensor]  # keys and values [B, H, P, D] of the target's states in one layer


def spread(layers: int) -> tuple[int, ...]:
    """After how many of the target's layers the residual stream is read: the authors' choice, from the second
    layer to the third last.
    """
    last = max(1, layers - 3)
    return tuple(min(1 + round(1 + at * (last - 1) / (READS - 1)), layers - 1) for at in range(READS))


@dataclass(frozen=True)
class Published:
    """How published drafters differ: attention and eps; for each layer how many states before the block it
    sees, None for all; whether an entry of such a layer sees only the entries of the block before it; whether
    the entry of the token n + 1 guesses too, so that entry k - 1 makes the guess of depth k; the size of a
    vocabulary of its own, None for the target's head.
    """

    form: LayerForm | None
    eps: float
    windows: tuple[int | None, ...] = ()
    causal_in_window: bool = True
    from_anchor: bool = False
    words_kept: int | None = None


@dataclass
class Context:
    """One lane's keys and values, a pair for each layer, of the `known` states that the target has given."""

    known: int = 0
    held: list[Held] = field(default_factory=list)


class DFlash(DraftModule):
    """`block`: entries b of a block, the root's included; layers, intermediate (0: the target's); mask_token:
    the id whose embedding stands for an unknown token.
    """

    kind = "dflash"
    sees = Sees(ALL, root=True, layers=True)

    def __init__(
        self,
        target: Target,
        block: int = 8,
        layers: int = 2,
        reads: tuple[int, ...] = (),
        intermediate: int = 0,
        mask_token: int = 1,
        published: Published | None = None,
    ):
        """published: the differences of a published drafter."""
        reads, intermediate = tuple(reads) or spread(target.layers), intermediate or target.intermediate
        super().__init__(
            target,
            block=block,
            layers=layers,
            reads=reads,
            intermediate=intermediate,
            mask_token=mask_token,
        )
        heads, width = target.heads, target.width
        usual = LayerForm(heads, heads, width // heads, target.theta, qk_eps=target.eps)
        own = published or Published(usual, target.eps)
        self.reads, self.block, self.mask_token, self.published = reads, block, mask_token, own
        self.masks = block
        self.depth = block if own.from_anchor else block - 1
        self.windows = own.windows or (None,) * layers
        self.fuse = nn.Linear(len(reads) * width, width, bias=False)
        self.hidden_norm, self.last_norm = (nn.RMSNorm(width, own.eps) for _ in range(2))
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads, intermediate, target.theta, own.eps, form=own.form)
            for _ in range(layers)
        )
        with torch.no_grad():
            self.last_norm.weight.copy_(target.last_norm)
        self.own_embedding: nn.Embedding | None = None  # of published drafters that have one
        self.head = None if own.words_kept is None else nn.Linear(width, own.words_kept, bias=False)
        if own.words_kept is not None:  # the target's id minus the draft's
            self.register_buffer("d2t", torch.zeros(own.words_kept, dtype=torch.long))

    def memory(self) -> Context:
        return Context()

    def features(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The fused layers c [..., d]."""
        taken = torch.cat([states[layer] for layer in self.reads], -1).to(self.fuse.weight.dtype)
        return self.hidden_norm(self.fuse(taken))

    def held(self, features: torch.Tensor, positions: torch.Tensor) -> list[Held]:
        """Keys and values of the target's states c [B, M, d] at positions [M], for each layer."""
        result = []
        for layer in self.layers:
            a: Attention = layer.attention
            k, v = (m(features).unflatten(-1, (-1, a.size)).transpose(1, 2) for m in (a.k, a.v))
            result.append((at_angles(a.k_norm(k), *a.angles(positions)).to(v.dtype), v))
        return result

    def blocks(self, roots: torch.Tensor, held: list[Held], starts: torch.Tensor) -> torch.Tensor:
        """The entries' outputs [B, R, depth, d] that guess, depth by depth: for each of the tokens `roots`
        [B, R], which stand at positions starts [R], a block that sees the states before it, those of `held`.
        """
        tokens = roots[..., None].repeat(1, 1, self.block)
        tokens[..., 1:] = self.mask_token
        read = self.target.read if self.own_embedding is None else self.own_embedding
        x = read(tokens).to(self.fuse.weight.dtype)  # [B, R, b, d]
        for layer, one, window in zip(self.layers, held, self.windows, strict=True):
            x = x + self.attend(layer.attention, layer.first_norm(x), one, starts, window)
            x = x + layer.feed(layer.norm(x))
        return self.last_norm(x if self.published.from_anchor else x[:, :, 1:])

    def attend(
        self, a: Attention, x: torch.Tensor, held: Held, starts: torch.Tensor, window: int | None
    ) -> torch.Tensor:
        """What the entries x [B, R, b, d] read, with the weights of `a`, in the states and in their block."""
        b, places = self.block, torch.arange(self.block, device=x.device)
        q, k, v = (m(x).unflatten(-1, (-1, a.size)).movedim(-2, 1) for m in (a.q, a.k, a.v))  # [B,H,R,b,D]
        turns = [
            part.unflatten(0, (-1, b)) for part in a.angles((starts[:, None] + places).flatten())
        ]  # [R, b, D]
        q, k = (at_angles(part, *turns).to(v.dtype) for part in (a.q_norm(q), a.k_norm(k)))
        keys, values = held
        if (shared := a.heads // a.kv_heads) > 1:
            k, v, keys, values = (part.repeat_interleave(shared, 1) for part in (k, v, keys, values))
        far = (q.flatten(2, 3) @ keys.transpose(-1, -2)).unflatten(2, (-1, b))  # [B, H, R, b, P]
        near = q @ k.transpose(-1, -2)  # [B, H, R, b, b]
        at = torch.arange(far.shape[-1], device=x.device)
        hidden = at >= starts[:, None]
        if window is not None:
            hidden = hidden | (at < starts[:, None] - window)
            if self.published.causal_in_window:
                near = near.masked_fill(places > places[:, None], -torch.inf)
        if hidden.any():
            far = far.masked_fill(hidden[:, None], -torch.inf)
        weights = (torch.cat([far, near], -1) * a.size**-0.5).softmax(-1)
        known, own = weights.split([far.shape[-1], b], -1)
        mixed = (known.flatten(2, 3) @ values).unflatten(2, (-1, b)) + own @ v
        return a.out(mixed.movedim(1, -2).flatten(-2))

    def words(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of normed outputs [..., d]."""
        if self.head is None:
            return self.target.logits(states)
        kept = torch.arange(len(self.d2t), device=self.d2t.device) + self.d2t
        return over_all_tokens(self.head(states), kept, len(self.target.head))

    def guesses(self, taps: Taps, rows: torch.Tensor) -> torch.Tensor:
        """The normed outputs [B, R, depth, d] of blocks whose roots are the tokens after these rows [R]."""
        positions = torch.arange(taps.tokens.shape[1], device=rows.device)
        held = self.held(self.features(taps.hidden, taps.states), positions)
        return self.blocks(taps.tokens[:, rows + 1], held, rows + 1)

    def loss(self, taps: Taps) -> torch.Tensor:
        """The sum over depths of exp(-(k - 1) / GAMMA) times the cross-entropy, for blocks that begin at one
        of every EVERY positions of a text, chosen at random in training.
        """
        count = taps.rows(self.depth)
        rows = torch.arange(0, count, EVERY, device=taps.tokens.device)
        if self.training:
            rows = some_rows(taps.tokens, count)[: len(rows)]
        states, total = self.guesses(taps, rows), torch.zeros((), device=rows.device)
        for k in range(1, self.depth + 1):
            p = taps.logits[:, rows + k].float().softmax(-1)
            total = total + math.exp(-(k - 1) / GAMMA) * cross_entropy(p, self.words(states[:, :, k - 1]))
        return total

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """As `DraftModule.along`; the block is always a whole one, since its entries see each other."""
        states = self.guesses(taps, torch.arange(taps.rows(1), device=taps.tokens.device))
        return [self.words(states[:, : taps.rows(k), k - 1]) for k in range(1, min(depth, self.depth) + 1)]

    def begin(
        self,
        memory: Context,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [K, V] of all depths."""
        positions = torch.arange(memory.known, memory.known + len(tokens), device=tokens.device)
        new = self.held(self.features(hidden, states)[None], positions)
        if memory.held:
            new = [
                (torch.cat([keys, k], 2), torch.cat([values, v], 2))
                for (keys, values), (k, v) in zip(memory.held, new, strict=True)
            ]
        memory.held, memory.known = new, memory.known + len(tokens)
        return self.words(self.blocks(tokens[None, -1:], new, positions[-1:] + 1)[0, 0])
