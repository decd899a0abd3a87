"""llama-tiny-streams: the modules of the Parallel Decoder Transformer (2025) on the frozen llama-tiny: five
streams write the fields of a record at the same time and agree on a colour by notes.
"""

import random
from argparse import Namespace
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from decoders.heads import ParallelStreams, Target
from decoders.models.loaded_model import LoadedModel
from decoders.parallel.stream_trunk import KV, Noted, nothing, through_layers
from explorer.corpus import IGNORED
from explorer.training import loop
from explorer.training.data.sections import SECTIONS, Record, record
from explorer.training.modules import frozen, ship_scorer, work_of

MODEL, NAME = "llama-tiny", "llama-tiny-streams"
RECORDS, HELD_OUT = 400, 24
BATCH, TOGETHER = 16, 50  # records of a step, and of a forward of the trunk
BLOCKS, STALLS = (3, 4, 5), 3  # tau is one of these; a stream begins up to STALLS - 1 rounds late
RATE, GATES = 4e-3, 4e-2  # learning rates of AdamW; the second one of gates, which begin nearly closed
READY = 0.3  # nats by which the streams before it may make a block more likely that counts as ready
MILLION_TOKENS = 2.0  # of sections
LOSSES = ("lm", "plan", "coverage", "ready")
NOTE = (
    "The loss is the cross-entropy of the sections' tokens, nats per token, with some of the notes "
    "visible; a colour guessed by chance costs ln 8 = 2.08 nats in each of them. Held out, the planner puts "
    "{plan:.0%} of the items into the right slots, and readiness is right about {ready:.0%} of the blocks. "
    "The gates of notes and of adapters, layer by layer, began at 0.02 and ended at {gates}."
)


@dataclass(frozen=True, eq=False)
class Batch:
    """The training data of N records: states [N, S, T, d] that enter the lowest layer with a side module,
    their positions [N, S, T] and labels [N, S, T]; for the prompts, keys and values of the layers from there
    on, which of them are visible [N, P], and the mean of the states [N, d]; the plans [N, S].
    """

    x: torch.Tensor
    positions: torch.Tensor
    labels: torch.Tensor
    past: list[torch.Tensor]  # keys and values by turns, layer by layer [N, H, P, D]
    sees: torch.Tensor
    prompts: torch.Tensor
    plans: torch.Tensor

    def some(self, at: torch.Tensor) -> "Batch":
        """The records `at` [B]."""
        rest = (self.sees[at], self.prompts[at], self.plans[at])
        return Batch(self.x[at], self.positions[at], self.labels[at], [p[at] for p in self.past], *rest)


@torch.no_grad()
def read_records(target: LoadedModel, records: list[Record], first: int) -> Batch:
    """Runs the prompts, and the sections after them, through the layers in which nothing is trained: up to
    layer `first`.
    """
    model, words, end = target.model, target.tokenizer, target.tokenizer.pad_token_id or 0
    prompts = [words(one.prompt)["input_ids"] for one in records]
    sections = [one.tokens(words) for one in records]
    width = max(map(len, prompts))
    longest = max(len(section) for each in sections for section in each)
    rows = torch.tensor([prompt + [end] * (width - len(prompt)) for prompt in prompts])
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    labels = torch.tensor(
        [[section + [IGNORED] * (longest - len(section)) for section in each] for each in sections]
    )
    last = rows.gather(1, lengths[:, None] - 1)[:, None].expand(-1, SECTIONS, -1)
    reads = torch.cat([last, labels[..., :-1].clamp(min=0)], -1)  # [N, S, T]
    positions = lengths[:, None, None] - 1 + torch.arange(longest).expand(len(rows), SECTIONS, -1)
    sees = torch.arange(width) < lengths[:, None] - 1
    parts = []
    for some in torch.arange(len(rows)).split(TOGETHER):
        parts.append(lower(model, rows[some], lengths[some], reads[some], positions[some], sees[some], first))
    xs, means, pasts = zip(*parts, strict=True)
    past = [torch.cat(part) for part in zip(*pasts, strict=True)]
    plans = torch.tensor([one.plan for one in records])
    return Batch(torch.cat(xs), positions, labels, past, sees, torch.cat(means), plans)


def lower(model, rows, lengths, reads, positions, sees, first: int) -> tuple:
    """For some records: states of the sections below layer `first`, the means of the prompts' states, and the
    prompts' keys and values from that layer on.
    """
    embed, layers = model.get_input_embeddings(), range(model.config.num_hidden_layers)
    none = torch.zeros(len(rows), 0, dtype=torch.bool)
    at = torch.arange(rows.shape[1]).expand(len(rows), -1)
    x, past = through_layers(model, embed(rows), at, nothing(model, len(rows)), none, layers)
    inside = (at < lengths[:, None])[..., None]
    means = (model.base_model.norm(x) * inside).sum(1) / lengths[:, None]
    below = shared(past[:first])
    x, _ = through_layers(
        model, embed(reads).flatten(0, 1), positions.flatten(0, 1), below, per_stream(sees), layers[:first]
    )
    return x.unflatten(0, (len(rows), SECTIONS)), means, [part for pair in past[first:] for part in pair]


def per_stream(part: torch.Tensor) -> torch.Tensor:
    """Rows [N, ...] of records as rows [N S, ...] of their streams."""
    return part.repeat_interleave(SECTIONS, 0)


def shared(past: KV) -> KV:
    """The prompts' keys and values, for each stream."""
    return [(per_stream(k), per_stream(v)) for k, v in past]


class Lesson:
    """The losses of the modules on some records."""

    def __init__(self, model: torch.nn.Module, streams: ParallelStreams):
        self.model, self.streams = model, streams
        self.layers = range(streams.first, model.config.num_hidden_layers)

    def states(self, batch: Batch, notes: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        """States [B, S, T, d] after the last layer. notes [B, N, n]; visible [B, S, T, N]."""
        count = len(batch.x)
        past = shared(list(zip(batch.past[::2], batch.past[1::2], strict=True)))
        sections = torch.arange(SECTIONS).repeat(count)
        noted = Noted(per_stream(notes), visible.flatten(0, 1), sections)
        x, positions = batch.x.flatten(0, 1), batch.positions.flatten(0, 1)
        x, _ = through_layers(
            self.model, x, positions, past, per_stream(batch.sees), self.layers, self.streams, noted
        )
        return x.unflatten(0, (count, SECTIONS))

    def costs(self, batch: Batch, states: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of each label [B, S, T], 0 after the end of a section."""
        known = batch.labels != IGNORED
        logits = self.model.lm_head(self.model.base_model.norm(states[known]))
        result = torch.zeros(batch.labels.shape)
        result[known] = F.cross_entropy(logits.float(), batch.labels[known], reduction="none")
        return result

    def losses(self, batch: Batch, block: int, late: torch.Tensor, delay: int) -> dict[str, torch.Tensor]:
        """`lm`, `plan`, `coverage` and `ready`, and the share of blocks about which readiness is `right`.
        late [B, S]: how many rounds a stream waited first.
        """
        streams, known = self.streams, batch.labels != IGNORED
        lengths, count = known.sum(-1), -(-known.shape[-1] // block)  # [B, S], blocks
        ends = ((torch.arange(1, count + 1) * block).expand(*lengths.shape, -1)).minimum(lengths[..., None])
        real = torch.arange(count) * block < lengths[..., None]  # [B, S, U]: whether there is such a block
        snapshot = streams.snapshot(batch.plans)[:, None]  # [B, 1, n]
        # first nobody sees a note of another: what streams then write at the ends of blocks
        alone = self.states(batch, snapshot, torch.ones(*batch.x.shape[:3], 1, dtype=torch.bool))
        notes = torch.cat([snapshot, streams.written(at_ends(alone, ends)).flatten(1, 2)], 1)
        rounds = late[..., None] + torch.arange(count)  # [B, S, U] of each note
        now = (late[..., None] + torch.arange(known.shape[-1]) // block)[..., None]  # [B, S, T, 1]
        visible = real.flatten(1)[:, None, None] & (rounds.flatten(1)[:, None, None] <= now - delay)
        always = torch.ones(*visible.shape[:3], 1, dtype=torch.bool)
        visible = torch.cat([always, visible], -1)
        states = self.states(batch, notes, visible)
        costs = self.costs(batch, states)
        with torch.no_grad():  # what if the streams before it had sent all their notes?
            owners = torch.arange(SECTIONS).repeat_interleave(count)  # of the notes
            before = (owners < torch.arange(SECTIONS)[:, None])[None, :, None] & real.flatten(1)[
                :, None, None
            ]
            full = visible | torch.cat([always, before.expand(*visible.shape[:3], -1)], -1)
            gap = by_block(costs - self.costs(batch, self.states(batch, notes, full)), block)
        behind = at_ends(states, ends).detach()
        coverage = streams.covered(behind, batch.plans[:, None, None])  # [B, S, U, S]
        owned = torch.eye(SECTIONS)[None, :, None] * (ends >= lengths[..., None] - 1)[..., None]
        seen = visible[:, :, ::block, :, None] * notes[:, None, None]
        seen = seen.sum(-2) / visible[:, :, ::block].sum(-1, keepdim=True)
        ready = streams.ready(behind, seen.detach(), coverage.detach(), streams.written(behind).detach())
        slots = streams.plan(batch.prompts)
        bce = F.binary_cross_entropy_with_logits
        label = (gap < READY)[real]
        return {
            "right": ((ready[real] > 0) == label).float().mean(),
            "lm": costs.sum() / known.sum(),
            "plan": F.cross_entropy(slots.flatten(0, 1), batch.plans.flatten()),
            "coverage": bce(coverage[real], owned.expand_as(coverage)[real]),
            "ready": bce(ready[real], label.float()),
        }


def at_ends(states: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """States [B, S, T, d] from which the last tokens of blocks were predicted: [B, S, U, d]."""
    return states.gather(2, (ends - 1)[..., None].expand(-1, -1, -1, states.shape[-1]))


def by_block(costs: torch.Tensor, block: int) -> torch.Tensor:
    """Costs [B, S, T] summed over each block: [B, S, U]."""
    return F.pad(costs, (0, -costs.shape[-1] % block)).unflatten(-1, (-1, block)).sum(-1)


def learn(lesson: Lesson, train: Batch, held: Batch, budget: float, work) -> loop.Curve:
    """Trains the modules in place."""
    streams = lesson.streams
    gates = [p for name, p in streams.named_parameters() if name.endswith("gate")]
    rest = [p for name, p in streams.named_parameters() if not name.endswith("gate")]
    opts = [
        torch.optim.AdamW(some, lr=lr, betas=(0.9, 0.98), weight_decay=0.0)
        for some, lr in ((rest, RATE), (gates, GATES))
    ]

    def step(seen: int) -> tuple[int, list[float]]:
        draw = torch.Generator().manual_seed(seen)
        some = train.some(torch.randint(len(train.x), (BATCH,), generator=draw))
        block = BLOCKS[int(torch.randint(len(BLOCKS), (), generator=draw))]
        late = torch.randint(STALLS, (BATCH, SECTIONS), generator=draw)
        losses = lesson.losses(some, block, late, 1 + int(torch.randint(2, (), generator=draw)))
        sum(losses[name] for name in LOSSES).backward()
        torch.nn.utils.clip_grad_norm_(streams.parameters(), 1.0)
        return some.labels.numel(), [losses["lm"].item()]

    @torch.no_grad()
    def validate() -> list[float]:
        late = torch.arange(len(held.x) * SECTIONS).view(-1, SECTIONS) % STALLS
        losses = lesson.losses(held, BLOCKS[1], late, 1)
        print({name: round(loss.item(), 3) for name, loss in losses.items()}, flush=True)
        return [losses["lm"].item()]

    return loop.run_steps(streams, opts, step, validate, budget, work)


@torch.no_grad()
def right(lesson: Lesson, held: Batch) -> dict[str, float]:
    """Shares of right plan items, and of blocks about which readiness is right."""
    plan = lesson.streams.plan(held.prompts).argmax(-1) == held.plans
    late = torch.zeros(len(held.x), SECTIONS, dtype=torch.long)
    return {
        "plan": plan.float().mean().item(),
        "ready": lesson.losses(held, BLOCKS[1], late, 1)["right"].item(),
    }


def main(args: Namespace) -> None:
    """Trains and ships it."""
    target, rng = frozen(MODEL), random.Random("streams")
    torch.manual_seed(0)
    streams = ParallelStreams(Target.of(target.model))
    records = [record(rng) for _ in range(RECORDS + HELD_OUT)]
    train = read_records(target, records[:RECORDS], streams.first)
    held = read_records(target, records[RECORDS:], streams.first)
    work = work_of(args.work, NAME, MODEL)
    budget = args.million_tokens or MILLION_TOKENS
    lesson = Lesson(target.model, streams)
    curve = learn(lesson, train, held, budget, work)
    gates = ", ".join(f"{gate:.2f}" for _, *both in streams.gates() for gate in both)
    facts = {
        "documents": RECORDS,
        "tokens_of": "(of sections, each several times)",
        "note": NOTE.format(gates=gates, **right(lesson, held)),
    }
    ship_scorer(NAME, streams, MODEL, target.tokenizer, curve, "token", facts, eight_bits=True)
