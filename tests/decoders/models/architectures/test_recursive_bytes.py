"""The recursive auto-encoder: log2 recursions of one group, and all bytes from one pass in any order."""

import torch

from decoders.models.architectures.recursive_bytes import RecursiveBytes, RecursiveConfig


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
