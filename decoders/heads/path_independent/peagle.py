"""P-EAGLE's drafter (Hui et al., 2026): EAGLE-3's layers guess all depths in one forward.

    entry i <= n: token i + 1 and the target's fused states at i, as in EAGLE-3
    entries n + 1 to n + K - 1: the token MASK and one learned vector m in place of the states
    the output of entry n + k - 1 guesses token n + 1 + k
    attention is causal: a mask sees the text and the masks before it

m has the width of the states before they are fused, and passes norms and fusion as they do. As in the library
speculators (kind `peagle`) and in vLLM's parallel drafting of EAGLE-3 heads.
"""

import torch
from torch import nn

from decoders.heads.feature_drafters.eagle3 import Eagle3, Published
from decoders.heads.parts.layers import DecoderLayer, Entries, Past
from decoders.heads.parts.module import ALL, Sees, seeded
from decoders.heads.parts.taps import Taps, Target

KEPT, LEAST = 0.7, 0.2  # share of a depth's places that go on to the next one; share of the first's at least


class PEagle(Eagle3):
    """`depth`: how many tokens K one forward guesses; layers: the first one reads token and states side by
    side, the others are ordinary; mask_token: the id whose embedding stands for an unknown token; the others
    as in EAGLE-3.
    """

    kind = "peagle"
    sees = Sees(ALL, root=True, layers=True)

    def __init__(
        self,
        target: Target,
        words_kept: int = 2048,
        reads: tuple[int, ...] = (),
        depth: int = 6,
        layers: int = 2,
        intermediate: int = 256,
        mask_token: int = 1,
        published: Published | None = None,
    ):
        """published: the differences of a published drafter."""
        super().__init__(target, words_kept, reads, intermediate=intermediate, published=published)
        del self.settings["steps"]
        self.settings |= {"depth": depth, "layers": layers, "mask_token": mask_token}
        self.depth, self.masks, self.mask_token = depth, depth - 1, mask_token
        own, width = self.published, self.published.width
        self.layers = nn.ModuleList(
            DecoderLayer(width, target.heads, intermediate, target.theta, own.eps, form=own.form)
            for _ in range(layers - 1)
        )
        self.mask_hidden = nn.Parameter(torch.randn(len(self.reads) * target.width))

    def masked(self) -> torch.Tensor:
        """The input [2d] of an entry whose token and states are unknown."""
        states = dict(zip(self.reads, self.mask_hidden.chunk(len(self.reads)), strict=True))
        token = torch.tensor(self.mask_token, device=self.mask_hidden.device)
        return self.joined(token, self.features(self.mask_hidden, states))

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        size = 2 if self.attention.window is None else 3  # tensors that a layer keeps
        x, held = super().layer(x, positions, mask, None if past is None else past[:size])
        for at, layer in enumerate(self.layers, 1):
            x, own = layer(x, positions, mask, None if past is None else past[at * size : (at + 1) * size])
            held += own
        return x, held

    def rollouts(self, taps: Taps, rows: list[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs [B, R_k, d] of the entries of depths k = 1, 2, ... along known texts, at the rows [R_k]
        given for each; those of a depth are among those of the depth above. Depth 1 has all rows.
        """
        x = self.joined(taps.tokens[:, 1:], self.features(taps.hidden, taps.states)[:, :-1])
        known, masked, past, outputs = torch.arange(x.shape[1], device=x.device), self.masked(), None, []
        before: list[torch.Tensor] = []
        for k, own in enumerate(rows):
            sees = [known <= own[:, None], *(one == own[:, None] for one in before[1:])]
            if k:
                x = masked.expand(len(taps.tokens), len(own), -1)
                sees.append(own == own[:, None])
            out, past = self.layer(x, own + k, torch.cat(sees, 1), past)
            outputs.append(out)
            before.append(own)
        return outputs

    def unrolled(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        everywhere = torch.arange(taps.rows(0), device=taps.tokens.device)
        said = self.rollouts(taps, [everywhere[: taps.rows(k)] for k in range(min(depth, self.depth))])
        return [one[:, : taps.rows(k)] for k, one in enumerate(said, 1)]

    def loss(self, taps: Taps) -> torch.Tensor:
        """The mean cross-entropy, over all entries that guess, under the target's distribution restricted to
        the draft's vocabulary. In training these are a random quarter of the places, at depth k only the
        share KEPT^(k - 1) of them, but at least LEAST (conditional drop-token sampling).
        """
        count = taps.rows(self.depth)
        asked = [torch.arange(count, device=taps.tokens.device)] * self.depth
        if self.training:
            order = torch.randperm(count, generator=seeded(taps.tokens), device=taps.tokens.device)
            most = max(1, count // 4)
            shares = [max(KEPT**k, LEAST) for k in range(self.depth)]
            asked = [order[: max(1, int(most * share))].sort().values for share in shares]
        everywhere = torch.arange(taps.rows(0), device=taps.tokens.device)
        said = self.rollouts(taps, [everywhere, *asked[1:]])
        said[0] = said[0][:, asked[0]]
        logits = torch.cat([self.own_logits(one) for one in said], 1)
        p = [taps.logits[:, rows + k][..., self.kept].float() for k, rows in enumerate(asked, 1)]
        return nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), torch.cat(p, 1).softmax(-1).flatten(0, 1)
        )

    def begin(
        self,
        memory: Entries,
        hidden: torch.Tensor,
        tokens: torch.Tensor,
        states: dict[int, torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """As `DraftModule.begin`: logits [K, V] of all depths, from one forward over the newly known entries
        and the masks, whose keys and values the next round drops.
        """
        new = self.joined(tokens, self.features(hidden, states))
        x = torch.cat([new, self.masked().expand(self.depth - 1, -1)])
        if memory.past is not None:
            memory.past = tuple(part[:, :, : memory.known] for part in memory.past)
        positions = torch.arange(memory.known, memory.known + len(x), device=x.device)
        mask = torch.ones(len(x), memory.known + len(x), dtype=torch.bool, device=x.device).tril(memory.known)
        out, memory.past = self.layer(x[None], positions, mask, memory.past)
        memory.known += len(new)
        return self.words(out[0, len(new) - 1 :])
