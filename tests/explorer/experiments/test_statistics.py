"""Figures of experiments: known values of each."""

import pytest

from explorer.experiments.statistics import bleu, distinct, repetition, self_bleu, sign_test, spearman


def test_the_sign_test():
    assert sign_test(0, 0) == sign_test(3, 3) == 1.0
    assert sign_test(5, 0) == sign_test(0, 5) == pytest.approx(2 / 32)
    assert sign_test(8, 2) == pytest.approx(2 * (45 + 10 + 1) / 1024)


def test_rank_correlation_by_hand():
    assert spearman([1, 2, 3, 4], [10, 20, 30, 99]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert spearman([1, 2, 3, 4], [1, 1, 2, 2]) == pytest.approx(2 / 5**0.5)  # ranks 1.5 1.5 3.5 3.5
    assert spearman([1, 2, 3, 4], [10, 30, 30, 90]) == pytest.approx(4.5 / (5 * 4.5) ** 0.5)
    assert spearman([1, 2], [5, 5]) is None


def test_what_is_said_again():
    assert distinct([[1, 2, 3], [1, 2, 4]], 2) == pytest.approx(3 / 4)
    assert distinct([[1]], 2) == repetition([1, 2, 3]) == 0.0
    assert repetition([1, 2, 3, 4, 5]) == 0.0
    assert repetition([1, 2, 1, 2, 1, 2, 1], 2) == pytest.approx(4 / 6)


def test_bleu_by_hand():
    """One of four tokens differs: 3/4, (2+1)/(3+1), (1+1)/(2+1), (0+1)/(1+1)."""
    product = 3 / 4 * 3 / 4 * 2 / 3 * 1 / 2
    assert bleu([1, 2, 3, 4], [[1, 2, 3, 9]]) == pytest.approx(product**0.25)
    assert bleu([1, 2, 3, 4], [[9, 9], [1, 2, 3, 4]]) == 1.0
    assert bleu([1, 2], [[1, 2, 3, 4]]) == pytest.approx(2.718281828 ** (1 - 2))  # too short
    assert bleu([1, 2, 3], [[4, 5, 6]]) == 0.0


def test_texts_that_are_all_the_same_and_texts_that_share_nothing():
    assert self_bleu([[1, 2, 3, 4, 5]] * 3) == 1.0
    assert self_bleu([[1, 2, 3], [4, 5, 6]]) == 0.0
    assert self_bleu([[1, 2, 3], []]) == 0.0
