"""tiny-retro: llama-tiny-draft with a store of texts that it reads chunk by chunk (Retro), 1.6 M parameters.
About animals it says what the store's notes say; it tells stories no better than without the store. Its
decoder is unchanged: with a gate of 0 it is llama-tiny-draft. Unlike the paper's, it was not
instruction-tuned.
"""

import random
from argparse import Namespace

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from decoders.models.architectures.retro import RetroConfig, RetroForCausalLM
from explorer.corpus import IGNORED, pack, read_stories
from explorer.training import cards, loop
from explorer.training.data.notes import WORDINGS, fitted, note, store_of
from explorer.training.loop import descend, run_steps, ship, trained

NAME, BASE = "tiny-retro", "llama-tiny-draft"
CHUNK, ROW = 16, 48
NOTES, STORE_STORIES = 300, 24_000  # notes of the store; tokens of stories in it
NOTE_ROWS, STORY_ROWS, HELD_OUT = 12, 6, 48
RATE = 2e-3
PAD = 1
Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # rows, neighbours of their chunks, labels


def build(base: torch.nn.Module, store: list[int]) -> RetroForCausalLM:
    """The base with a cross-attention above its first layer; both this and the encoder start as copies of its
    layers.
    """
    torch.manual_seed(0)
    shape = base.config.to_dict() | {"model_type": "retro", "architectures": None}
    config = RetroConfig(**shape, chunk=CHUNK, after=len(base.model.layers) // 2, store_tokens=len(store))
    model = RetroForCausalLM(config)
    model.model.load_state_dict(base.model.state_dict())
    model.store_ids.copy_(torch.tensor(store))
    layers = base.model.layers
    for at, layer in enumerate(model.encoder):
        layer.load_state_dict(layers[at % len(layers)].state_dict())
    model.encoder_norm.load_state_dict(base.model.norm.state_dict())
    looking, cross = layers[config.after].self_attn, model.cross
    for name in "qkvo":
        getattr(cross, name).weight.data.copy_(getattr(looking, f"{name}_proj").weight)
    cross.norm.load_state_dict(layers[config.after].input_layernorm.state_dict())
    torch.nn.init.zeros_(cross.o.weight)
    model.model.requires_grad_(False)
    return model


class Texts:
    """Rows of notes, each with a note that says the same in other words, and of stories with their neighbours
    in the store.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, model: RetroForCausalLM, stories: torch.Tensor):
        self.tokenizer, self.model, self.stories = tokenizer, model, stories

    def notes(self, rng: random.Random, count: int) -> Rows:
        """Fresh notes; the neighbours of both chunks are the same other note."""
        rows, near = [], []
        for _ in range(count):
            one = note(rng)
            asked, known = rng.sample(range(len(WORDINGS)), 2)
            rows.append(fitted(self.tokenizer, one.text(asked), ROW, PAD))
            near.append([fitted(self.tokenizer, one.text(known), 2 * CHUNK, PAD)] * (ROW // CHUNK))
        return labelled(torch.tensor(rows), torch.tensor(near))

    def story_rows(self, rng: random.Random, count: int) -> Rows:
        """Rows of stories with their neighbours in the store."""
        starts = [rng.randrange(len(self.stories) - ROW) for _ in range(count)]
        rows = torch.stack([self.stories[at : at + ROW] for at in starts])
        return labelled(rows, self.model.neighbours_of(rows))


def labelled(rows: torch.Tensor, near: torch.Tensor) -> Rows:
    """With labels after the first chunk, where a neighbour can help."""
    labels = rows.masked_fill(rows == PAD, IGNORED)
    labels[:, :CHUNK] = IGNORED
    return rows, near, labels


def loss(model: RetroForCausalLM, batch: Rows, shuffled: bool = False) -> torch.Tensor:
    """Nats per token. shuffled: each row reads the neighbours of the row above it."""
    rows, near, labels = batch
    logits = model(rows, neighbours=near.roll(1, 0) if shuffled else near).logits[:, :-1]
    return cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED)


@torch.no_grad()
def measured(model: RetroForCausalLM, some: dict[str, Rows]) -> dict[str, dict[str, float]]:
    """Nats per token of texts with their own neighbours, with those of others, and with the gate at 0."""
    result = {}
    for name, batch in some.items():
        ways = {"neighbours": loss(model, batch).item(), "shuffled": loss(model, batch, True).item()}
        gate = model.cross.gate.item()
        model.cross.gate.fill_(0)
        ways["gate 0"] = loss(model, batch).item()
        model.cross.gate.fill_(gate)
        result[name] = {way: round(value, 4) for way, value in ways.items()}
    return result


def main(args: Namespace) -> None:
    """Trains and ships it."""
    stories, unread = read_stories(args.corpus)
    tokenizer = AutoTokenizer.from_pretrained(loop.MODELS / BASE, trust_remote_code=False)
    tokens = torch.from_numpy(pack(stories[:4000], tokenizer)).long()
    held_tokens = torch.from_numpy(pack(unread[:200], tokenizer)).long()
    rng = random.Random("store")
    kept = store_of(tokenizer, [note(rng) for _ in range(NOTES)], CHUNK, PAD)
    kept += tokens[:STORE_STORIES].tolist()
    model = build(trained(BASE).cpu(), kept)
    texts = Texts(tokenizer, model, tokens[STORE_STORIES:])
    held_texts = Texts(tokenizer, model, held_tokens)
    some = {
        "notes": held_texts.notes(random.Random("held out"), HELD_OUT),
        "stories": held_texts.story_rows(random.Random("held out"), HELD_OUT),
    }

    def step(seen: int) -> tuple[int, list[float]]:
        rng = random.Random(f"retro {seen}")
        parts = zip(texts.notes(rng, NOTE_ROWS), texts.story_rows(rng, STORY_ROWS), strict=True)
        batch = tuple(torch.cat(both) for both in parts)
        return int((batch[2] != IGNORED).sum()), [descend(loss(model, batch), model)]

    @torch.no_grad()
    def validate() -> list[float]:
        return [sum(loss(model, batch).item() for batch in some.values()) / 2]

    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    curve = run_steps(model, [optimizer], step, validate, args.million_tokens or 0.06, args.work / NAME)
    facts = {
        "million_tokens": round(curve[-1][0], 3),
        "architecture": "Retro",
        "tokens_of": "after the first chunks of its rows",
    }
    losses = measured(model, some)
    folder = ship(model, tokenizer, NAME, curve, validate()[0], **facts)
    loop.write_json(folder / "neighbours.json", losses)
    cards.write(folder)
