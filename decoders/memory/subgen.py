"""SubGen (Zandieh et al. 2024): attention from clusters of keys and samples of values.

Two forms. `Stream` is the paper's algorithm: numerator and denominator estimated separately, from values
drawn by their squared norm and keys drawn per cluster. The practical form keeps the newest tokens exactly and
greedy k-centre representatives of the others, each with its count and the mean of its cluster's values (the
last two are our interpretation: the paper does not say).
"""

import torch

from decoders.memory.attention import attention_part, merge_lse
from decoders.memory.policy import HIDDEN, NUMBER, Policy, Slots

FIRST = 8  # places that are there before distances are measured
COUNT = 4  # bytes of a cluster's count


def k_centres(points: torch.Tensor, k: int) -> torch.Tensor:
    """Greedy k-centre on points [B, n, D]: starts with the first point and always adds the one farthest from
    those chosen. Indices [B, k], ascending.
    """
    batch = torch.arange(len(points), device=points.device)
    chosen = [torch.zeros_like(batch)]
    nearest = (points - points[:, :1]).square().sum(-1)
    nearest[:, 0] = -1.0  # chosen
    for _ in range(k - 1):
        farthest = nearest.argmax(-1)
        chosen.append(farthest)
        distance = (points - points[batch, farthest][:, None]).square().sum(-1)
        nearest = torch.minimum(nearest, distance)
        nearest[batch, farthest] = -1.0
    return torch.stack(chosen, dim=1).sort(-1).values


class Stream:
    """The paper's state for B heads of width D, one token after another. delta [B]: the radii."""

    def __init__(
        self, delta: torch.Tensor, width: int, values: int, samples: int, generator: torch.Generator
    ):
        batch, like = len(delta), {"device": delta.device, "dtype": delta.dtype}
        self.delta, self.generator, self.sizes = delta, generator, (width, values, samples)
        self.mu = torch.zeros(batch, **like)  # sum of squared norms so far
        self.slots = torch.zeros(batch, values, 2, width, **like)  # M: keys and values
        self.norms = torch.zeros(batch, values, **like)  # squared, of the slots' values
        self.centres = torch.zeros(batch, 0, width, **like)
        self.samples = torch.zeros(batch, 0, samples, width, **like)  # S_c
        self.counts = torch.zeros(batch, 0, **like)  # n_c; 0: not open

    def add(self, key: torch.Tensor, value: torch.Tensor) -> None:
        """The next token of each head: key and value [B, D]."""
        self._cluster(key)
        norm = value.square().sum(-1)  # [B]
        probability = norm / (self.mu + norm).clamp(min=torch.finfo(norm.dtype).tiny)
        taken = self._coins(self.norms.shape, probability[:, None])  # [B, s]
        pair = torch.stack([key, value], dim=1)[:, None]  # [B, 1, 2, D]
        self.slots = torch.where(taken[..., None, None], pair, self.slots)
        self.norms = torch.where(taken, norm[:, None], self.norms)
        self.mu = self.mu + norm

    def _cluster(self, key: torch.Tensor) -> None:
        batch = torch.arange(len(key), device=key.device)
        distance = torch.linalg.vector_norm(self.centres - key[:, None], dim=-1)  # [B, C]
        distance = distance.masked_fill(self.counts == 0, torch.inf)
        opens = torch.ones_like(self.mu, dtype=torch.bool)
        if distance.shape[1]:
            nearest = distance.argmin(-1)
            opens = distance[batch, nearest] > self.delta
            joins = batch[~opens]
            at = nearest[joins]
            self.counts[joins, at] += 1
            probability = 1 / self.counts[joins, at]
            taken = self._coins((len(joins), self.samples.shape[2]), probability[:, None])
            new = torch.where(taken[..., None], key[joins][:, None], self.samples[joins, at])
            self.samples[joins, at] = new
        if not opens.any():
            return
        rows = batch[opens]
        if int((self.counts[rows] > 0).sum(-1).max()) == self.counts.shape[1]:  # one more column for all
            pad = torch.nn.functional.pad
            self.centres, self.counts = pad(self.centres, (0, 0, 0, 1)), pad(self.counts, (0, 1))
            self.samples = pad(self.samples, (0, 0, 0, 0, 0, 1))
        at = (self.counts[rows] > 0).sum(-1)
        self.centres[rows, at], self.counts[rows, at] = key[rows], 1.0
        self.samples[rows, at] = key[rows][:, None].expand(-1, self.samples.shape[2], -1)

    def _coins(self, shape: tuple, probability: torch.Tensor) -> torch.Tensor:
        drawn = torch.rand(shape, generator=self.generator)
        return drawn.to(probability) < probability

    def estimate(
        self, q: torch.Tensor, heads: slice = slice(None)
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """For queries [B, N, D] of `heads`, which are scaled already: numerator [B, N, D] and denominator [B,
        N], both times exp(-shift), and the shift [B, N].
        """
        tiny, (_, per_value, per_key) = torch.finfo(q.dtype).tiny, self.sizes
        kept, norms, mu = self.slots[heads], self.norms[heads], self.mu[heads]
        values, samples = (
            q @ kept[:, :, 0].mT,
            q @ self.samples[heads].flatten(1, 2).mT,
        )  # [B, N, s], [B, N, C t]
        weights = (mu[:, None] / (per_value * norms.clamp(min=tiny))) * (norms > 0)
        counts = (self.counts[heads] / per_key).repeat_interleave(per_key, -1)  # [B, C t]
        samples = samples.masked_fill(counts[:, None] == 0, -torch.inf)
        values = values.masked_fill(weights[:, None] == 0, -torch.inf)
        shift = torch.maximum(values.amax(-1), samples.amax(-1))
        numerator = (torch.exp(values - shift[..., None]) * weights[:, None]) @ kept[:, :, 1]
        return numerator, (torch.exp(samples - shift[..., None]) * counts[:, None]).sum(-1), shift

    def kept_bytes(self) -> float:
        """Of all heads."""
        clusters, width = float((self.counts > 0).sum()), self.centres.shape[-1]
        per_cluster = (1 + self.samples.shape[2]) * width * NUMBER + COUNT
        return clusters * per_cluster + self.norms.numel() * (2 * width + 1) * NUMBER


class SubGen(Policy):
    """Both forms. Committed places that are no longer exact are hidden; attention reads their clusters or
    samples instead.
    """

    alike = False

    def __init__(self, shape, parameters) -> None:
        super().__init__(shape, parameters)
        self.done, self.stream = 0, None
        self.streaming = parameters["memory_form"] == "streaming"
        self.recent = parameters["memory_budget"] // 2
        self.centres = parameters["memory_budget"] - self.recent
        self.generator = torch.Generator().manual_seed(parameters["memory_seed"])
        self.places = torch.zeros(shape.layers * shape.kv_heads, 0, dtype=torch.long)  # [B, C] of the centres

    def settle(self, slots: Slots, places: torch.Tensor) -> None:
        (self._stream if self.streaming else self._gather)(slots, places)

    def _flat(self, slots: Slots, which: int, places: torch.Tensor) -> torch.Tensor:
        """Keys (0) or values (1) [B, n, D] of all layers and heads at slots [n]."""
        return slots.pool[:, which].index_select(2, places).flatten(0, 1)

    # ---- practical
    # ---------------------------------------------------------------------------------------------

    def _gather(self, slots: Slots, places: torch.Tensor) -> None:
        """Tokens that leave the newest ones join the centres; k-centre then chooses which of all these stay
        centres.
        """
        end = len(places) - self.recent
        if len(places) <= self.recent + self.centres:
            return
        if not self.done:
            batch = self.shape.layers * self.shape.kv_heads
            self.places = torch.zeros(batch, 0, dtype=torch.long, device=places.device)
            self.counts = torch.zeros(batch, 0, device=places.device, dtype=slots.pool.dtype)
            self.sums = torch.zeros(batch, 0, self.shape.width, device=places.device, dtype=slots.pool.dtype)
        leaving = torch.arange(self.done, end, device=places.device)
        new = places[leaving]
        rows = torch.arange(len(self.places), device=places.device)[:, None]
        at = torch.cat([self.places, leaving.expand(len(self.places), -1)], dim=1)  # [B, n]
        keys = slots.pool[:, 0].flatten(0, 1)[rows, places[at]]  # [B, n, D]
        counts = torch.cat(
            [self.counts, torch.ones_like(leaving, dtype=keys.dtype).expand(len(at), -1)], dim=1
        )
        sums = torch.cat([self.sums, self._flat(slots, 1, new)], dim=1)
        chosen = k_centres(keys, min(self.centres, at.shape[1]))  # [B, C]
        home = torch.cdist(keys, keys[rows, chosen]).argmin(-1)  # [B, n] the centre that stands for each
        home.scatter_(1, chosen, torch.arange(chosen.shape[1], device=home.device).expand_as(chosen))
        self.counts = torch.zeros_like(counts[:, : chosen.shape[1]]).scatter_add(1, home, counts)
        spread = home[..., None].expand_as(sums)
        self.sums = torch.zeros_like(sums[:, : chosen.shape[1]]).scatter_add(1, spread, sums)
        self.places, self.done = at.gather(1, chosen), end
        layer, head, at = (
            rows // self.shape.kv_heads,
            rows % self.shape.kv_heads,
            places[self.places],
        )  # [B, C]
        slots.bias[:, :, places[:end]] = HIDDEN
        slots.bias[layer, head, at] = self.counts.log().to(slots.bias)
        slots.pool[layer, 1, head, at] = self.sums / self.counts[..., None]

    # ---- the paper's
    # -------------------------------------------------------------------------------------------

    def _stream(self, slots: Slots, places: torch.Tensor) -> None:
        if self.stream is None:
            if len(places) < FIRST:
                return
            keys = self._flat(slots, 0, places)
            pairs = torch.triu_indices(len(places), len(places), 1, device=keys.device)
            distances = torch.cdist(keys, keys)[:, pairs[0], pairs[1]]
            delta = distances.float().quantile(self.parameters["memory_radius"], dim=-1).to(keys)
            sizes = self.shape.width, self.parameters["memory_values"], self.parameters["memory_samples"]
            self.stream = Stream(delta, *sizes, self.generator)
        new = places[self.done :]
        keys, values = self._flat(slots, 0, new), self._flat(slots, 1, new)
        for index in range(len(new)):
            self.stream.add(keys[:, index], values[:, index])
        slots.bias[:, :, new] = HIDDEN
        self.done = len(places)

    def attend(self, layer, reading, q, k, v, mask) -> torch.Tensor:
        """The estimate for the tokens that are no longer exact, merged with the exact part."""
        if self.stream is None:
            return super().attend(layer, reading, q, k, v, mask)
        heads, kv_heads, group = q.shape[1], k.shape[1], q.shape[1] // k.shape[1]
        own = slice(layer * kv_heads, (layer + 1) * kv_heads)
        queries = (q[0] * self.shape.scaling).reshape(kv_heads, -1, q.shape[-1])  # [Hkv, G N, D]
        numerator, denominator, shift = self.stream.estimate(queries, own)
        tiny = torch.finfo(q.dtype).tiny
        out = (numerator / denominator.clamp(min=tiny)[..., None]).view(heads, -1, q.shape[-1])
        lse = (denominator.clamp(min=tiny).log() + shift).view(heads, -1)
        bias = reading.bias(layer)
        bias = torch.zeros_like(k[0, ..., 0]) if bias is None else bias
        bias = bias.repeat_interleave(group, 0)[:, None]  # [H, 1, K]
        bias = bias if mask is None else bias + mask[0]
        exact = attention_part(
            q[0], k[0], v[0], bias.masked_fill(bias < HIDDEN / 2, -torch.inf), self.shape.scaling
        )
        return merge_lse([(out, lse), exact])[None]

    # ---- what is recorded
    # ------------------------------------------------------------------------------------------

    def kept_bytes(self, count: int) -> float:
        exact = (count - self.done) * self.shape.slot_bytes
        if self.stream is not None:
            return exact + self.stream.kept_bytes()
        return exact + self.places.numel() * (2 * self.shape.width * NUMBER + COUNT)

    def states(self, count: int) -> list[list[str]]:
        """A place is clustered where a head of the layer has it as a centre."""
        rows = []
        for at in self.places.view(self.shape.layers, -1).tolist():
            row = ["clustered" if self.stream is not None else "evicted"] * self.done
            for place in at:
                row[place] = "clustered"
            rows.append(row + ["full"] * (count - self.done))
        return rows


make = SubGen
