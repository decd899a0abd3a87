"""The predictor of SpecBranch (Shen et al., 2025; called H-RAD there): whether a window of drafted tokens
will be rejected, accepted in part or accepted as a whole, before the target reads it.

It reads the target's states after its last layers when it chose the newest token, and that token. Trained on
the outcomes of one draft's windows.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

NONE, SOME, ALL = range(3)  # how much of a window is accepted
UNASKED = -1  # label of places that are not scored
LAYERS = 4  # number of last layers whose states are read


class Outlook(nn.Module):
    """Three linear layers with ReLU and dropout between them. `settings`: the arguments that a file stores to
    build it again; `of`: the name of the draft; `window`: tokens per window.
    """

    kind = "outlook"

    def __init__(self, target: Target, of: str = "", window: int = 4, widths: tuple[int, int] = (64, 32)):
        super().__init__()
        self.target, self.settings = target, {"of": of, "window": window, "widths": tuple(widths)}
        layers = min(LAYERS, target.layers)
        self.reads: tuple[int, ...] = tuple(range(target.layers - layers + 1, target.layers))
        first, second = widths
        self.inner = nn.Linear((layers + 1) * target.width, first)
        self.middle = nn.Linear(first, second)
        self.output = nn.Linear(second, 3)
        self.dropout = nn.Dropout(0.2)

    def read(self, states: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """The network's input from states [K, ..., d] after the last K layers, last norm included, and the
        embeddings of the tokens [...] that were chosen there, each scaled to root mean square 1.
        """
        parts = [*states, self.target.read(chosen)]
        return torch.cat([F.rms_norm(part.float(), part.shape[-1:]) for part in parts], -1)

    def forward(self, read: torch.Tensor) -> torch.Tensor:
        """Logits [..., 3] of NONE, SOME, ALL."""
        x = self.dropout(F.relu(self.inner(read.to(self.inner.weight.dtype))))
        return self.output(self.dropout(F.relu(self.middle(x))))

    @torch.no_grad()
    def scores(self, streams: torch.Tensor, chosen: int) -> torch.Tensor:
        """Probabilities [3] after one place. streams [L + 1, d]: the residual stream there after 0 to L
        layers, before the last norm; chosen: the token after it.
        """
        last = F.rms_norm(streams[-1], (self.target.width,), self.target.last_norm, self.target.eps)
        states = torch.stack([*(streams[layer] for layer in self.reads), last])
        token = torch.tensor(chosen, device=streams.device)
        return self(self.read(states, token)).float().softmax(-1)

    def inputs(self, taps: Taps) -> torch.Tensor:
        """The network's inputs [B, T - 1, ...] at all places of known texts but the last: row n reads the
        states after token n, and token n + 1.
        """
        states = torch.stack([*(taps.states[layer] for layer in self.reads), taps.hidden])
        return self.read(states[:, :, :-1], taps.tokens[:, 1:])

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """The probability [B, T - 1] of ALL at all places of known texts but the last."""
        return self(self.inputs(taps)).float().softmax(-1)[..., ALL]

    def loss(self, taps: Taps, truth: torch.Tensor) -> torch.Tensor:
        """Cross-entropy in nats. truth [B, T]: NONE, SOME, ALL or UNASKED; row n is for the window after
        token n + 1, so the last one is not used.
        """
        logits = self(self.inputs(taps)).float()
        return F.cross_entropy(logits.flatten(0, 1), truth[:, :-1].flatten(), ignore_index=UNASKED)
