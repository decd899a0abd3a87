"""The one door for chance: streams, exactness, scripts, enumeration."""

from collections import Counter

import pytest
import torch

from decoders.chooser import Exhaustive, Known, Random, Script, invert, uniform


def test_draws_depend_on_seed_and_tag_and_not_on_their_order():
    tags = [("accept", 5, 0), ("draft", 5, 0, 0), ("sample", 5)]
    forward = [Random(7).bernoulli(0.5, tag).u for tag in tags]
    chooser = Random(7)
    backward = [chooser.bernoulli(0.5, tag).u for tag in reversed(tags)]
    assert forward == backward[::-1]
    assert len({*forward, *(uniform(8, tag) for tag in tags)}) == 6


def test_uniform_numbers_are_uniform_and_streams_are_not_correlated():
    count = 20_000
    accept = torch.tensor([uniform(1, ("accept", i)) for i in range(count)], dtype=torch.float64)
    draft = torch.tensor([uniform(1, ("draft", i)) for i in range(count)], dtype=torch.float64)
    assert accept.min() >= 0.0 and accept.max() < 1.0
    assert abs(accept.mean() - 0.5) < 4 * (1 / 12 / count) ** 0.5
    assert abs(accept.var() - 1 / 12) < 0.002
    assert abs(torch.corrcoef(torch.stack([accept, draft]))[0, 1]) < 4 / count**0.5


def test_bernoulli_accepts_iff_u_is_below_the_probability():
    chooser = Random(0)
    for i in range(200):
        value, u = chooser.bernoulli(0.3, ("accept", i))
        assert value == (u < 0.3)
        assert chooser.bernoulli(1.0, ("accept", i)).value
        assert not chooser.bernoulli(0.0, ("accept", i)).value


@pytest.mark.parametrize("u,index", [(0.0, 1), (0.2499, 1), (0.25, 3), (0.9999, 3), (1.0, 3)])
def test_categorical_inverts_the_cumulative_sum_and_never_takes_a_zero(u, index):
    assert invert(torch.tensor([0.0, 1.0, 0.0, 3.0, 0.0]), u) == index


def test_known_numbers_decide_as_they_did():
    known, weights = Known({"accept": 0.4, "sample": 0.7}), torch.tensor([0.5, 0.5])
    assert known.bernoulli(0.5, ("accept", 3)) == (True, 0.4)
    assert known.bernoulli(0.4, ("accept", 9)) == (False, 0.4)
    assert known.categorical(weights, ("sample", 3)) == (1, 0.7)
    with pytest.raises(ValueError, match="not known"):
        known.uniforms(2, ("sample", 3))


def test_categorical_frequencies():
    weights, count = torch.tensor([0.1, 0.0, 0.6, 0.3], dtype=torch.float64), 20_000
    chooser = Random(3)
    seen = Counter(chooser.categorical(weights, ("sample", i)).value for i in range(count))
    for index, weight in enumerate(weights.tolist()):
        assert abs(seen[index] / count - weight) <= 4 * (weight * (1 - weight) / count) ** 0.5


def test_script_plays_back_and_says_when_it_is_empty():
    chooser = Script([True, 2])
    assert chooser.bernoulli(0.0, ("accept", 1)) == (True, None)
    assert chooser.categorical(torch.ones(3), ("sample", 1)) == (2, None)
    with pytest.raises(ValueError, match="no outcome left"):
        chooser.bernoulli(0.5, ("accept", 2))


def test_exhaustive_walks_every_outcome_once_with_its_probability():
    weights = torch.tensor([0.2, 0.0, 0.3], dtype=torch.float64)  # not normalised on purpose
    seen = []

    def run(chooser):
        first = chooser.categorical(weights, ("sample", 0)).value
        outcome = (first,) if first == 0 else (first, bool(chooser.bernoulli(0.25, ("accept", 1)).value))
        seen.append(outcome)
        return outcome

    law = Exhaustive().distribution(run)
    assert law == pytest.approx({(0,): 0.4, (2, True): 0.15, (2, False): 0.45}, abs=1e-15)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-15)
    assert len(seen) == len(set(seen)) == 3


def test_exhaustive_knows_that_a_tag_stands_for_one_number():
    """u < .5 and then, of the same u, u < .25: a fresh draw would give (True, True) 1/8."""
    law = Exhaustive().distribution(
        lambda c: (c.bernoulli(0.5, ("a",)).value, c.bernoulli(0.25, ("a",)).value)
    )
    assert law == pytest.approx({(True, True): 0.25, (True, False): 0.25, (False, False): 0.5}, abs=1e-15)
    weights, other = torch.tensor([0.2, 0.5, 0.3]), torch.tensor([0.6, 0.0, 0.4])

    def twice(chooser):
        return chooser.categorical(weights, ("a", 1)).value, chooser.categorical(other, ("a", 1)).value

    expected = {(0, 0): 0.2, (1, 0): 0.4, (1, 2): 0.1, (2, 2): 0.3}
    assert Exhaustive().distribution(twice) == pytest.approx(expected, abs=1e-7)
    seeds = Counter(twice(Random(seed)) for seed in range(4000))
    assert set(seeds) == set(expected) and abs(seeds[1, 0] / 4000 - 0.4) < 0.03


def test_exhaustive_leaves_out_what_cannot_happen():
    law = Exhaustive().distribution(
        lambda c: (c.bernoulli(1.0, ("a",)).value, c.bernoulli(0.0, ("b",)).value)
    )
    assert law == {(True, False): 1.0}
