"""Word error rates, the medoid and the most frequent of several texts."""

import pytest

from decoders.diffusion.candidates import edits, error_rates, medoid, most_frequent, word_error_rate


@pytest.mark.parametrize(
    ("text", "reference", "count"),
    [
        ("a b c", "a b c", 0),
        ("a b", "a b c", 1),
        ("a x c", "a b c", 1),
        ("b c a", "a b c", 2),
        ("", "a b", 2),
    ],
)
def test_edits(text, reference, count):
    assert edits(text.split(), reference.split()) == count


def test_rates_are_per_word_of_the_reference():
    assert word_error_rate("a b c d", "a b") == 1.0
    assert word_error_rate("a b", "a b c d") == 0.5
    assert word_error_rate("a", "") == 1.0 and word_error_rate("", "") == 0.0
    assert error_rates(["a b c d", "a b"]) == [[0.0, 1.0], [0.5, 0.0]]


def test_the_medoid():
    assert medoid(error_rates(["ab", "ab", "cd"])) == 0
    assert medoid(error_rates(["cd", "ab", "ab"])) == 1
    assert (
        medoid(error_rates(["a b c", "a b d", "a x d"])) == 1
    )  # each of the others is one word away from it


def test_the_most_frequent():
    assert most_frequent(["a", "b", "b", "a", "b"]) == 1
    assert most_frequent(["b", "a"]) == 0
