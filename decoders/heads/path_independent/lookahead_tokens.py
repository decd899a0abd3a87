"""The base of drafters inside the target's own forward: slots after a host token, whose states run through
the frozen layers and attend to the text up to the host and to slots of smaller offset.

A slot does not see the token after its host, so guesses do not depend on the drafted path. Here slots are run
for training and measuring; while decoding, the engine runs them.
"""

from collections.abc import Callable
from typing import Any

import torch
from transformers.cache_utils import Cache

from decoders.heads.parts.module import ALL, DraftModule, Sees
from decoders.heads.parts.taps import Taps, Target

ANCHORS = 8  # hosts per text in a training step
SPREAD = 0x9E3779B9  # separates the random streams of modules that are trained on the same batch


class Behind(Cache):
    """A text's keys and values, followed by those of one forward, which are not kept."""

    def __init__(self, past: tuple[tuple[torch.Tensor, torch.Tensor], ...]):
        super().__init__(layers=[])
        self.past = past

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values [B, H, T + N, D] of a layer."""
        keys, values = self.past[layer_idx]
        keys, values = keys.to(key_states.dtype), values.to(value_states.dtype)
        return torch.cat([keys, key_states], 2), torch.cat([values, value_states], 2)


class LookaheadTokens(DraftModule):
    """Base class: `depth` slots after a host. Slot i (from 1) enters layer `enters[i - 1]` with the state
    from `entering`, at i positions after its host, and predicts the token i + 1 positions after it.
    """

    enters: tuple[int, ...]
    sees = Sees(ALL, layers=True)

    def __init__(self, target: Target, depth: int, **settings: Any):
        super().__init__(target, depth=depth, **settings)
        self.depth = depth

    def entering(self, taps: Taps, hosts: torch.Tensor, i: int) -> torch.Tensor:
        """The states [B, A, d] with which slots i enter, for hosts at places [A] of the texts."""
        raise NotImplementedError

    def place(self, scorer: Any, node: int, host: int, i: int) -> None:
        """Sets what node `node`, slot i after node `host`, reads in the next forward of the target's
        scorer.
        """
        raise NotImplementedError

    def slot_logits(self, taps: Taps, hosts: torch.Tensor, depth: int | None = None) -> torch.Tensor:
        """Logits [B, A, K, V] of the slots after hosts [A] of the texts, K = `depth` or all."""
        count = depth or self.depth
        base, (texts, length) = self.target.model.base_model, taps.tokens.shape
        waiting = {i: self.entering(taps, hosts, i) for i in range(1, count + 1)}
        alive, x = [], None  # offsets of the slots that have entered, and their states [B, A * alive, d]
        for at, layer in enumerate(base.layers):
            new = [i for i in waiting if self.enters[i - 1] == at]
            if new:
                parts = [] if x is None else list(x.unflatten(1, (len(hosts), -1)).unbind(2))
                alive, parts = [*alive, *new], [*parts, *(waiting.pop(i) for i in new)]
                order = sorted(range(len(alive)), key=alive.__getitem__)
                alive = [alive[row] for row in order]
                x = torch.stack([parts[row] for row in order], 2).flatten(1, 2)
                places = (hosts[:, None] + torch.tensor(alive, device=hosts.device)).flatten()
                mask = slots_see(hosts, len(alive), length)
                added = torch.zeros(mask.shape, dtype=x.dtype, device=x.device)
                added = added.masked_fill(~mask, torch.finfo(x.dtype).min)[None, None]
                turns = base.rotary_emb(x, places[None].expand(texts, -1))
            if x is None:
                continue
            x = layer(
                x,
                attention_mask=added.expand(texts, -1, -1, -1).to(x.dtype),
                position_ids=places[None],
                past_key_values=Behind(taps.past),
                position_embeddings=turns,
            )
            x = x[0] if isinstance(x, tuple) else x
        return self.target.exit_logits(x).unflatten(1, (len(hosts), count))

    def slot_loss(
        self, taps: Taps, one: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], weights: list[float]
    ) -> torch.Tensor:
        """Weighted sum over the slots of `one(logits [N, V], places [A])` at random hosts, seeded by the
        batch; places are those of the predicted tokens.
        """
        length = taps.tokens.shape[1]
        seed = int(taps.tokens.sum()) ^ (SPREAD * (1 + len(self.kind)))
        random = torch.Generator().manual_seed(seed % 2**31)
        room = length - self.depth - 1  # number of hosts whose predicted tokens are all within the text
        hosts = torch.randperm(room, generator=random)[:ANCHORS].sort().values.to(taps.tokens.device)
        logits = self.slot_logits(taps, hosts)
        terms = [weights[i - 1] * one(logits[:, :, i - 1], hosts + i + 1) for i in range(1, self.depth + 1)]
        return torch.stack(terms).sum()

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        deepest = min(depth, self.depth)
        hosts = torch.arange(taps.tokens.shape[1], device=taps.tokens.device)
        logits = self.slot_logits(taps, hosts, deepest)
        return [logits[:, : taps.rows(k), k - 1] for k in range(1, deepest + 1)]


def slots_see(hosts: torch.Tensor, count: int, length: int) -> torch.Tensor:
    """The mask [A * count, length + A * count] of slots, `count` after each host [A]: a slot sees the text of
    `length` tokens up to its host, and that host's slots up to itself.
    """
    rows = hosts.repeat_interleave(count)[:, None]
    text = torch.arange(length, device=hosts.device)[None] <= rows
    ladder = torch.ones(count, count, dtype=torch.bool, device=hosts.device).tril()
    own = torch.block_diag(*[ladder] * len(hosts)) if len(hosts) else ladder[:0, :0]
    return torch.cat([text, own.bool().to(hosts.device)], 1)
