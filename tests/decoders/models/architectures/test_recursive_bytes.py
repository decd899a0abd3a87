"""The recursive auto-encoder: log2 recursions of one group, and all bytes from one pass in any order."""

import random

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.architectures.recursive_bytes import RecursiveBytes, RecursiveConfig
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from explorer.training.recipes.tiny_recursive_bytes import copies
from explorer.training.small_streams import bytes_right, rows


def made(**options) -> RecursiveBytes:
    """A tiny random model."""
    torch.manual_seed(3)
    return RecursiveBytes(
        RecursiveConfig(vocab_size=12, channels=4, vector=6, separator=(7, 8), **options)
    ).eval()


@torch.no_grad()
def test_recursions_are_the_logarithm_of_the_length():
    for length, shortest, recursions in ((64, 4, 4), (8, 2, 2), (1024, 4, 8)):
        model = made(length=length, shortest=shortest)
        assert model.config.recursions == recursions
        levels = model.encode(torch.randint(2, 12, (1, length)))
        assert [x.shape[-1] for x in levels] == [length >> r for r in range(recursions + 1)]
        back = model.decode(model.vectors(torch.randint(2, 12, (1, length))))
        assert [x.shape[-1] for x in back] == [shortest << r for r in range(recursions + 1)]
    sizes = {sum(p.numel() for p in made(length=n, shortest=4).parameters()) for n in (8, 64, 512)}
    assert len(sizes) == 1  # one group, applied as often as it takes


@torch.no_grad()
def test_no_byte_depends_on_the_others_that_were_written():
    model = made(length=8, shortest=2)
    sources = torch.tensor([[3, 4, 5, 6, 7, 8]])
    seen = torch.ones_like(sources).bool()
    orders = [torch.tensor([answer]) for answer in ([2, 3, 4, 5], [9, 9, 9, 9])]
    first, second = (model.answer_logits(sources, seen, answers) for answers in orders)
    assert torch.equal(first, second)
    once = model.head(model.written(model.fitted(sources, seen)))
    assert torch.equal(first, once[:, :5])


@torch.no_grad()
def test_a_source_without_its_separator_is_filled_up_with_zeros():
    model = made(length=8, shortest=2)
    sources = torch.tensor([[3, 4, 7, 8, 0], [5, 6, 4, 7, 8], [0, 0, 0, 0, 0]])
    seen = torch.tensor([[True] * 4 + [False], [True] * 5, [False] * 5])
    assert model.fitted(sources, seen).tolist() == [
        [3, 4, 0, 0, 0, 0, 0, 0],
        [5, 6, 4, 0, 0, 0, 0, 0],
        [0] * 8,
    ]


@pytest.fixture(scope="module")
def shipped() -> LoadedModel:
    """The trained one."""
    return load("tiny-recursive-bytes", "cpu", "float32")


def test_one_vector_holds_95_percent_of_the_bytes_of_sentences_that_were_never_read(shipped):
    unseen = copies(random.Random("asked in a test"), 64, unseen=True)
    assert bytes_right(shipped.model, rows(shipped.tokenizer, unseen)) > 0.95


def test_byte_by_byte_and_in_blocks_it_writes_the_same(shipped):
    """What Jacobi guessed changes no distribution: the first pass over a block already says all of it."""
    prompt = shipped.encode("The dog sees the ball.=>")
    one, many = (
        Lane(name, prompt, {"target": shipped}, limits=Limits(24)).run() for name in ("greedy", "jacobi")
    )
    assert one.output() == many.output() and one.text() == "The dog sees the ball.<|endoftext|>"
    assert len(many.steps) * 4 <= len(one.steps)
