"""A tiny transformer that is trained under several attention masks: comments and the code that they describe,
letter by letter.

Of UniXcoder (2022) this keeps the three modes with their prefix tokens, masked language modelling, next-token
prediction and code from comments. Contrastive learning, comments from code, span denoising and syntax trees
are left out.
"""

import random
from dataclasses import dataclass

import torch
from transformers import LlamaForCausalLM

from decoders.lenses.mask_modes import MODES, forward_in_mode
from explorer.experiments.models.small import fit
from explorer.experiments.models.small_llama import small_llama
from explorer.tasks.python_programs import TEMPLATES

LETTERS = "".join(map(chr, range(32, 127)))
PREFIX = {mode: len(LETTERS) + at for at, mode in enumerate(MODES)}  # mode -> first token of a text
BETWEEN, END, MASK, PAD = range(len(LETTERS) + 3, len(LETTERS) + 7)
VOCABULARY = PAD + 1
MASKED, LONGEST = 0.25, 40  # share of the letters that are masked; letters of an answer
NO_LABEL = -100


@dataclass(frozen=True)
class Rows:
    """Texts [B, T] under one mode, the positions of each source, and the labels at each position."""

    mode: str
    tokens: torch.Tensor
    sources: list[int]
    labels: torch.Tensor


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """(what a function does, its body), drawn from the templates of the task `python`."""
    rng, result = random.Random(f"modes {seed}"), []
    for _ in range(count):
        says, _, body, _ = rng.choice(TEMPLATES)
        k = rng.randint(2, 9)
        result.append((says.format(k=k), body.format(k=k)))
    return result


def letters(text: str) -> list[int]:
    return [LETTERS.index(letter) for letter in text]


def rows_of(mode: str, some: list[tuple[str, str]], seed: int) -> Rows:
    """Pairs in the form in which one mode is trained on them: `<mode> comment <between> code <end>`. encoder:
    a quarter of the letters are masked, and predicted at their positions. decoder: every next token.
    encoder-decoder: every next token of the code.
    """
    rng = random.Random(seed)
    texts, labels, sources = [], [], []
    for says, body in some:
        source = [PREFIX[mode], *letters(says), BETWEEN]
        text = [*source, *letters(body), END]
        following = [*text[1:], NO_LABEL]
        if mode == "encoder":
            hidden = [token < len(LETTERS) and rng.random() < MASKED for token in text]
            following = [token if hid else NO_LABEL for token, hid in zip(text, hidden, strict=True)]
            text = [MASK if hid else token for token, hid in zip(text, hidden, strict=True)]
        if mode == "encoder-decoder":
            following[: len(source) - 1] = [NO_LABEL] * (len(source) - 1)
        texts.append(text)
        labels.append(following)
        sources.append(len(source))
    longest = max(map(len, texts))
    tokens, wanted = (
        torch.tensor([row + [filling] * (longest - len(row)) for row in made])
        for made, filling in ((texts, PAD), (labels, NO_LABEL))
    )
    return Rows(mode, tokens, sources, wanted)


def loss_of(model: LlamaForCausalLM, rows: Rows) -> torch.Tensor:
    """Mean loss in nats over the labels."""
    logits = forward_in_mode(model, rows.tokens, rows.mode, rows.sources).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), rows.labels.flatten(), ignore_index=NO_LABEL
    )


def trained(modes: tuple[str, ...], width: int, layers: int, steps: int, batch: int) -> LlamaForCausalLM:
    """A model each of whose batches has one of `modes`, chosen at random: only mask and prefix differ."""
    model, rng = small_llama(VOCABULARY, width, layers, 4), random.Random(0)
    number = iter(range(steps))

    def loss(_: torch.Tensor) -> torch.Tensor:
        at = next(number)
        return loss_of(model, rows_of(rng.choice(modes), pairs(batch, at), at))

    fit(model.parameters(), loss, torch.zeros(1, 1), steps, 1, 3e-3)
    return model.eval().requires_grad_(False)


@torch.no_grad()
def written(model: LlamaForCausalLM, mode: str, says: str, longest: int = LONGEST) -> str:
    """A model's greedy output for a comment in a mode that writes."""
    source = [PREFIX[mode], *letters(says), BETWEEN]
    text = list(source)
    while len(text) < len(source) + longest:
        logits = forward_in_mode(model, torch.tensor([text]), mode, [len(source)]).logits[0, -1]
        text.append(int(logits.argmax()))
        if text[-1] >= len(LETTERS):
            return "".join(LETTERS[token] for token in text[len(source) : -1])
    return "".join(LETTERS[token] for token in text[len(source) :])


@torch.no_grad()
def filled(model: LlamaForCausalLM, rows: Rows) -> float:
    """The share of labels that are the most likely token."""
    wanted = rows.labels != NO_LABEL
    likeliest = forward_in_mode(model, rows.tokens, rows.mode, rows.sources).logits.argmax(-1)
    return float((likeliest == rows.labels)[wanted].float().mean())
