"""Shared by tests on the shipped pair: the models, twenty prompts, and greedy decoding's continuations."""

import warnings
from functools import cache

import torch

from decoders.lane import Lane, Limits
from decoders.models import loading
from decoders.models.catalog import DRAFT, TARGET
from decoders.models.loaded_model import LoadedModel

LENGTH = 64
PROMPTS = [
    "Once upon a time there was a little girl named Lily. She",
    "One day, Tom and his dog went to the park.",
    "The sun was shining and the birds were",
    "There was a big red ball in the garden.",
    'Mom said, "Do not touch the hot',
    "A small cat sat on the",
    "Ben wanted to be brave, but he was",
    "It was a cold winter morning and",
    "The old man looked at the sea and",
    "Sara and her brother found a box. In the box",
    '"Can I have a cookie?" asked Tim.',
    "The bird could not fly because",
    "They ran and ran and ran until",
    "Once there was a king who had",
    "In the forest lived a bear. The bear",
    "Anna likes to draw. She draws a",
    "The train was late, so",
    "Every night the moon",
    "The frog said to the fish,",
    "Lily gave the toy to Tom. Tom gave the toy to Lily. Lily",
]


@cache
def pair() -> dict[str, LoadedModel]:
    """Target and draft that come with the project, on the CPU."""
    return {"target": loading.load(TARGET, "cpu"), "draft": loading.load(DRAFT, "cpu")}


def decode(strategy: str, prompt: str, parameters: dict | None = None, length: int = LENGTH, **how):
    """The trace of one lane on the shipped pair."""
    ids = pair()["target"].encode(prompt)
    return Lane(strategy, ids, pair(), parameters, limits=Limits(length), **how).run()


@cache
def greedy(prompt: str) -> list[int]:
    """Greedy decoding, computed once per prompt."""
    return decode("greedy", prompt).output()


@cache
def generated(prompt: str, **options) -> list[int]:
    """The greedy output of transformers' generate with `options`."""
    target = pair()["target"]
    ids = torch.tensor([target.encode(prompt)])
    options = {k: pair()["draft"].model if k == "assistant_model" else v for k, v in options.items()}
    found = target.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=LENGTH,
        do_sample=False,
        pad_token_id=0,
        **options,
    )
    return found[0, ids.shape[1] :].tolist()


def assert_same(found: list[int], wanted: list[int], prompt: str) -> None:
    """Asserts token-identical texts. A tie (two most likely logits closer than 1e-4) may be broken by
    rounding, and is reported as a warning.
    """
    if found == wanted:
        return
    at = next(
        (i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b),
        min(len(found), len(wanted)),
    )
    target = pair()["target"]
    ids = torch.tensor([[*target.encode(prompt), *wanted[:at]]])
    top = target.model(ids).logits[0, -1].topk(2).values
    gap = float(top[0] - top[1])
    said = f"{prompt!r}: first difference at token {at}, the most likely two are {gap:.2g} apart"
    assert gap < 1e-4, said
    warnings.warn(said, RuntimeWarning, stacklevel=2)
