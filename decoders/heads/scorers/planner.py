"""The plan model of EDU-PGA (Adams et al., 2023, section 4.1): which units of a text a summary will cover.

It reads one vector per unit, the mean of the frozen target's states there, and copies unit by unit until it
chooses stop. Narrower than the paper's: units are copied in the order of the text, so that each set of units
is one plan.
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

MAX_UNITS = 32  # units with their own position embedding
SHARP = 10.0  # sharpness of the soft salience labels
NextUnit = Callable[[Sequence[tuple[int, ...]]], torch.Tensor]


class Planner(nn.Module):
    """A pointer network: an encoder of units, a decoder of plans. `settings`: the arguments that a file
    stores to build it again.
    """

    kind = "planner"
    reads: tuple[int, ...] = ()

    def __init__(
        self, target: Target, width: int = 64, heads: int = 4, layers: int = 2, dropout: float = 0.1
    ):
        super().__init__()
        self.settings = {"width": width, "heads": heads, "layers": layers}
        shape = dict(dim_feedforward=2 * width, dropout=dropout, batch_first=True, norm_first=True)
        self.read = nn.Linear(target.width, width)
        self.place = nn.Embedding(MAX_UNITS + 1, width)  # 0: the whole text
        self.stop = nn.Parameter(torch.randn(width) * width**-0.5)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, heads, **shape), layers, enable_nested_tensor=False
        )
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, heads, **shape), layers)
        self.ask, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.salience = nn.Linear(width, 1)

    def encode(self, units: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """The decoder's memory [B, 1 + U, w] from vectors [B, 1 + U, d], the whole text's first; counts [B]:
        numbers of units.
        """
        at = torch.arange(units.shape[1], device=units.device)
        x = self.read(units.to(self.read.weight.dtype)) + self.place(at.clamp(max=MAX_UNITS))
        return self.encoder(x, src_key_padding_mask=at > counts[:, None])

    def pointed(self, memory: torch.Tensor, counts: torch.Tensor, plans: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [B, P + 1, U + 1] of the next unit after each prefix of the plans [B, P], which
        are padded with -1; the last column is stop. Units before a chosen one are excluded, and so is stop as
        the first choice.
        """
        rows, steps = plans.shape
        padding = torch.arange(memory.shape[1], device=memory.device) > counts[:, None]
        given = memory.gather(1, (plans + 1).clamp(min=0)[..., None].expand(-1, -1, memory.shape[-1]))
        x = torch.cat([memory[:, :1], given], 1)
        causal = torch.ones(steps + 1, steps + 1, dtype=torch.bool, device=memory.device).triu(1)
        x = self.decoder(x, memory, tgt_mask=causal, memory_key_padding_mask=padding)
        keys = torch.cat([self.key(memory[:, 1:]), self.key(self.stop).expand(rows, 1, -1)], 1)
        logits = (self.ask(x) @ keys.transpose(1, 2)).float() * keys.shape[-1] ** -0.5
        return logits.masked_fill(self.barred(plans, counts, memory.shape[1] - 1), -torch.inf).log_softmax(-1)

    @staticmethod
    def barred(plans: torch.Tensor, counts: torch.Tensor, units: int) -> torch.Tensor:
        """Which units a plan may not continue with [B, P + 1, U + 1]."""
        at = torch.arange(units, device=plans.device)
        last = F.pad(plans, (1, 0), value=-1)[..., None]  # [B, P + 1, 1]
        closed = (at <= last) | (at >= counts[:, None, None])
        first = torch.arange(last.shape[1], device=plans.device)[:, None] == 0
        return torch.cat([closed, first.expand(len(plans), -1, 1)], -1)

    def salient(self, memory: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [B, U] of a distribution of salience over units."""
        at = torch.arange(memory.shape[1] - 1, device=memory.device)
        scores = self.salience(memory[:, 1:]).squeeze(-1).float()
        return scores.masked_fill(at >= counts[:, None], -torch.inf).log_softmax(-1)

    @torch.no_grad()
    def opened(self, vectors: torch.Tensor) -> tuple[NextUnit, list[float]]:
        """For one text with vectors [1 + U, d]: (a function from N prefixes of plans of equal length to
        log-probabilities [N, U + 1] of the next unit or stop, the salience of its units, which sums to 1).
        """
        counts = torch.tensor([len(vectors) - 1], device=vectors.device)
        memory = self.encode(vectors[None], counts)

        @torch.no_grad()
        def next_unit(beginnings: Sequence[tuple[int, ...]]) -> torch.Tensor:
            plans = torch.tensor(beginnings, device=memory.device).view(len(beginnings), -1).long()
            rows = len(beginnings)
            return self.pointed(memory.expand(rows, -1, -1), counts.expand(rows), plans)[:, -1]

        return next_unit, self.salient(memory, counts)[0].exp().tolist()

    def loss(
        self, units: torch.Tensor, counts: torch.Tensor, plans: torch.Tensor, salience_labels: torch.Tensor
    ) -> torch.Tensor:
        """Cross-entropy in nats per index of the oracle plans [B, P], padded with -1, plus, with equal
        weight, the divergence of salience from the soft labels [B, U].
        """
        memory = self.encode(units, counts)
        logprobs = self.pointed(memory, counts, plans)
        wanted = F.pad(plans, (0, 1), value=-1)
        lengths = (plans >= 0).sum(1)
        wanted[torch.arange(len(plans), device=plans.device), lengths] = salience_labels.shape[1]  # stop
        known = wanted >= 0
        pointing = F.nll_loss(logprobs[known], wanted[known])
        inside = torch.arange(salience_labels.shape[1], device=salience_labels.device) < counts[:, None]
        labels = (SHARP * salience_labels).masked_fill(~inside, -torch.inf).softmax(-1)
        gaps = torch.where(inside, labels * (labels.clamp(min=1e-9).log() - self.salient(memory, counts)), 0)
        return pointing + gaps.sum(-1).mean()

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """The salience [B, T] of each token of known texts if each were a unit."""
        whole = taps.hidden.mean(1, keepdim=True)
        memory = self.encode(
            torch.cat([whole, taps.hidden], 1), torch.full((len(whole),), taps.hidden.shape[1])
        )
        return self.salience(memory[:, 1:]).squeeze(-1).float().sigmoid()


def unit_vectors(hidden: torch.Tensor, spans: list[tuple[int, int]]) -> torch.Tensor:
    """The input vectors [1 + U, d] of a text: the mean of its states [T, d], and the mean over each unit."""
    return torch.stack([hidden.mean(0), *(hidden[begin:end].mean(0) for begin, end in spans)])
