"""The heads of speculative decoding for Verilog (Xu et al., 2025): Medusa's, trained only on complete
fragments.

The training texts define the fragments.
"""

import torch

from decoders.heads.parts.taps import Taps, Target
from decoders.heads.path_independent.medusa import DECAY, Medusa


class Fragments(Medusa):
    """Medusa's heads with the paper's labels: at each place, only those up to the last mark within reach.

    mark: the token that ends a fragment.
    """

    kind = "fragments"

    def __init__(self, target: Target, mark: int, depth: int = 4, rank: int = 32):
        super().__init__(target, depth, rank)
        self.settings["mark"] = mark

    def loss(self, taps: Taps) -> torch.Tensor:
        """Sum over the heads of 0.8^k times the cross-entropy under the target's distribution, averaged over
        the places where the head has a label.
        """
        depth, total = len(self.blocks), taps.logits.new_zeros(())
        labelled = labels(taps.tokens, self.settings["mark"], depth)
        for k in range(1, depth + 1):
            at = labelled[:, : taps.tokens.shape[1] - k, k]  # [B, T - k]; later labels are beyond the text
            p, logits = taps.p[:, k:][at], self.head(k, taps.hidden[:, :-k][at])
            losses = -(p * logits.float().log_softmax(-1)).sum(-1)
            total = total + DECAY**k * losses.sum() / max(1, len(losses))
        return total


def labels(tokens: torch.Tensor, mark: int, depth: int) -> torch.Tensor:
    """Which labels count, [B, T, 1 + depth]: at place n of tokens y [B, T], those of y[n + 1] ... y[n + 1 +
    depth] up to the last mark among them, and always the first, which is the target's own next token.

    There are no marks beyond the end of the tokens.
    """
    marks = torch.nn.functional.pad((tokens == mark).int(), (0, depth + 1))
    column = marks.unfold(1, depth + 1, 1)[:, 1:]  # [B, T, 1 + depth]: is y[n+1+k] a mark?
    kept = column.flip(-1).cummax(-1).values.flip(-1).bool()
    kept[..., 0] = True
    return kept
