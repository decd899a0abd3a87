"""The lattice of blockwise heads: the dossier's order, exactness against all paths, and its measures."""

import itertools
import math

import pytest
import torch

from decoders.datastore import concatenated_texts
from decoders.speculative.drafters.sausage import NGrams, best_paths, common, oracle, repeats

NEW, BIG, YORK, CITY = range(4)
WORKED = [
    [(NEW, math.log(0.6)), (BIG, math.log(0.4))],
    [(NEW, math.log(0.5)), (YORK, math.log(0.45)), (CITY, math.log(0.05))],
]
BIGRAMS = {
    (NEW, YORK): 0.5, (NEW, NEW): 0.01, (NEW, CITY): 0.05, (BIG, CITY): 0.3,
    (BIG, NEW): 0.05, (BIG, YORK): 0.01,
}  # fmt: skip


def bigram(before: tuple, tokens: list[int]) -> list[float]:
    """Alike for both first words."""
    return [math.log(BIGRAMS[before[-1], token]) if before else 0.0 for token in tokens]


def test_the_worked_order():
    """new York .135, big new .01, big city .006, new new .003, big York .0018, new city .0015."""
    found = best_paths(WORKED, 6, 1.0, (), bigram, 2)
    order = [(NEW, YORK), (BIG, NEW), (BIG, CITY), (NEW, NEW), (BIG, YORK), (NEW, CITY)]
    assert [path for _, path in found] == order
    products = [0.135, 0.01, 0.006, 0.003, 0.0018, 0.0015]
    assert [math.exp(score) for score, _ in found] == pytest.approx(products)
    assert best_paths(WORKED, 1, 0.0, (), bigram, 2)[0][1] == (NEW, NEW)  # the heads alone say a word twice


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_the_best_paths_are_those_of_all_paths(order, weight):
    """Against every path of random lattices, with a language model that reads order - 1 tokens."""
    random = torch.Generator().manual_seed(order)
    columns = []
    for _ in range(4):
        tokens = torch.randperm(5, generator=random)[:3].tolist()
        values = torch.rand(3, generator=random).log().sort(descending=True).values.tolist()
        columns.append(list(zip(tokens, values, strict=True)))

    def language(before, tokens):
        assert len(before) == order - 1
        return [-(hash((before, token)) % 1000) / 200 for token in tokens]

    before = (1, 2, 3, 4)
    every = []
    for path in itertools.product(*columns):
        text, total = list(before), 0.0
        for token, own in path:
            last = tuple(text[len(text) - order + 1 :]) if order > 1 else ()
            total += own + weight * language(last, [token])[0]
            text.append(token)
        every.append((total, tuple(token for token, _ in path)))
    every.sort(key=lambda one: -one[0])
    found = best_paths(columns, 10, weight, before, language, order)
    assert [score for score, _ in found] == pytest.approx([score for score, _ in every[:10]])
    assert [path for _, path in found] == [path for _, path in every[:10]]


def test_ngrams_lean_on_shorter_ones():
    """Two texts, 1 2 3 and 1 2 4: by hand, over five tokens."""
    known = NGrams.of(concatenated_texts([[1, 2, 3], [1, 2, 4]]), 3)
    single = (1 + 1) / (6 + 5)  # of 3
    pair = (1 + single) / (2 + 1)  # 3 after 2
    assert math.exp(known.logprob((), 3, 5)) == pytest.approx(single)
    assert math.exp(known.logprob((2,), 3, 5)) == pytest.approx(pair)
    assert math.exp(known.logprob((9, 1, 2), 3, 5)) == pytest.approx((1 + pair) / (2 + 1))
    assert math.exp(known.logprob((9,), 3, 5)) == pytest.approx(single)  # an unknown run
    for before in ((), (2,), (1, 2), (4,)):
        assert sum(math.exp(known.logprob(before, token, 5)) for token in range(5)) == pytest.approx(1.0)


def test_what_is_counted_of_a_draft():
    assert common((1, 2, 3), [1, 2, 4, 5]) == 2 and common((1, 2), [1, 2, 3]) == 2 and common((), [1]) == 0
    assert oracle([[1, 2], [3], [4, 5]], [2, 3, 6]) == 2 and oracle([[1]], [1, 2]) == 1
    assert repeats((1, 1, 2, 2, 2)) == 0.75 and repeats((1,)) == 0.0


def test_more_paths_hold_all_of_fewer_and_the_lattice_holds_most():
    """So that in one context a draft of more paths is never worth less, and none is worth more than the
    lattice.
    """

    def apart(before, token):
        return -abs(before[-1] - token)

    random = torch.Generator().manual_seed(3)
    for _ in range(20):
        columns = [
            list(zip(torch.randperm(6, generator=random)[:4].tolist(), [-0.5, -1.0, -1.5, -2.0], strict=True))
            for _ in range(3)
        ]
        text = torch.randint(6, (3,), generator=random).tolist()

        def nearest(before, tokens):
            return [-abs(before[-1] - token) for token in tokens]

        sizes = [best_paths(columns, count, 0.5, (1,), nearest, 2) for count in (1, 2, 5, 9)]
        assert all(more[: len(few)] == few for few, more in itertools.pairwise(sizes))
        worth = [max(common(path, text) for _, path in found) for found in sizes]
        assert worth == sorted(worth)
        assert worth[-1] <= oracle([[token for token, _ in column] for column in columns], text)
