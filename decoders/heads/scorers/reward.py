"""Reward heads: how good a text is so far, predicted from the frozen target's states.

Three questions, each answered by a probability: is every step so far right, can this prefix still become
right, is the whole text right. The labels come from the tasks' checkers.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

QUESTIONS = ("steps", "prefix", "outcome")
PREFIX = QUESTIONS.index("prefix")  # asked at every token of an answer


class Reward(nn.Module):
    """One small network for all questions. It is recurrent, since a wrong token leaves little trace in the
    states after it. `settings`: the arguments that a file stores to build it again.
    """

    kind = "reward"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, width: int = 64, dropout: float = 0.2):
        super().__init__()
        self.settings = {"width": width}
        self.norm = nn.LayerNorm(target.width)
        self.state = nn.Linear(target.width, width)
        self.probability = nn.Linear(2, width, bias=False)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width + 1, len(QUESTIONS))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: torch.Tensor, log_p: torch.Tensor) -> torch.Tensor:
        """Logits [B, A, 3] of the questions after each token of answers.

        hidden [B, A, d]: states after the prompt's last token and each token of the answer; log_p [B, A]: the
        target's log-probability of each in nats, 0 for the prompt's last token.
        """
        probabilities = torch.stack([log_p, log_p.exp()], -1)
        read = F.gelu(self.state(self.dropout(self.norm(hidden))) + self.probability(probabilities))
        memory, _ = self.memory(read)
        whole = log_p.cumsum(-1).unsqueeze(-1)  # log-probability of the answer so far
        return self.output(torch.cat([self.dropout(memory), whole], -1))

    @torch.no_grad()
    def scores(self, hidden: torch.Tensor, log_p: torch.Tensor) -> dict[str, torch.Tensor]:
        """Question -> probability [A] after each token of one answer; hidden [A, d], log_p [A] as in
        `forward`.

        `steps` is meant for ends of lines, `prefix` for any token of an answer, `outcome` for its end.
        """
        dtype = self.state.weight.dtype
        logits = self(hidden[None].to(dtype), log_p[None].to(dtype))[0]
        return dict(zip(QUESTIONS, logits.float().sigmoid().unbind(-1), strict=True))

    def along(self, taps: Taps) -> torch.Tensor:
        """Its scores [3, T] along one text [1, T], whose first token counts as the prompt."""
        start, rest = torch.zeros(1, dtype=torch.long), taps.tokens.shape[1] - 1
        hidden, log_p = read_answers(taps, start, rest)
        return torch.stack(list(self.scores(hidden[0], log_p[0]).values()))

    def loss(self, taps: Taps, truth: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy in nats: the mean over questions of the mean over their places. truth [B, T,
        3]: 0, 1, or -1 where a question does not apply; every row is a prompt followed by an answer.
        """
        answer = truth[..., PREFIX] >= 0
        starts = answer.int().argmax(-1) - 1
        hidden, log_p = read_answers(taps, starts, int(answer.sum(-1).max()))
        wanted = from_starts(truth, starts, log_p.shape[1], fill=-1)
        logits = self(hidden, log_p).float()
        losses = []
        for at in range(len(QUESTIONS)):
            asked = wanted[..., at] >= 0
            if asked.any():
                sought = wanted[..., at][asked].float()
                losses.append(F.binary_cross_entropy_with_logits(logits[..., at][asked], sought))
        return torch.stack(losses).mean()


def read_answers(taps: Taps, starts: torch.Tensor, longest: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The inputs of `Reward.forward` for answers of up to `longest` tokens; starts [B]: where prompts end."""
    log_p = torch.zeros_like(taps.tokens, dtype=torch.float32)
    after = taps.logits[:, :-1].float().log_softmax(-1)
    log_p[:, 1:] = after.gather(-1, taps.tokens[:, 1:, None]).squeeze(-1)
    hidden, log_p = (from_starts(part, starts, longest + 1) for part in (taps.hidden, log_p))
    log_p[:, 0] = 0.0
    return hidden, log_p


def from_starts(rows: torch.Tensor, starts: torch.Tensor, length: int, fill: float = 0) -> torch.Tensor:
    """Windows [B, length, ...] of rows [B, T, ...]: row b from starts[b] on; `fill` beyond its end."""
    at = starts[:, None] + torch.arange(length, device=rows.device)
    beyond = at >= rows.shape[1]
    window = rows[torch.arange(len(rows), device=rows.device)[:, None], at.clamp(max=rows.shape[1] - 1)]
    window[beyond] = fill
    return window
