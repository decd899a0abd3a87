"""Minimum Bayes risk takes the sample that is most like all; samples side by side are independent."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.beam.hypotheses import returned
from decoders.search.mbr import UTILITIES, chrf, word_f1
from tests.helpers import tiny_models


def run(strategy, model, new_tokens=6, seed=0, prompt=(1, 0), chooser=None, **parameters):
    lane = Lane(strategy, list(prompt), {"target": model}, parameters, seed, Limits(new_tokens), chooser)
    return lane.run()


def test_utilities_by_hand():
    assert word_f1("a b b", "b c") == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    assert word_f1("", "") == 1.0 and word_f1("a", "") == 0.0
    # n-grams of "abc" and "abd": 2 of 3, 1 of 2, 0 of 1; precision and recall are both 7/18
    assert chrf("abc", "abd") == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert chrf("a bc", "abc") == 1.0 and chrf("xy", "ab") == 0.0 and chrf("", "a") == 0.0
    assert UTILITIES["same text"](" a", "a ") == 1.0


@pytest.mark.parametrize("utility", UTILITIES)
def test_the_text_has_the_highest_mean_utility_of_all_samples(utility):
    model = tiny_models.make("llama", seed=3)
    asked = {"num_samples": 6, "num_return_sequences": 6, "temperature": 0.5, "utility": utility}
    for seed in range(4):
        trace = run("mbr", model, 8, seed, prompt=(40, 41), **asked)
        texts = [(tokens, score) for tokens, score in returned(trace)]
        assert len(texts) == 6 and trace.output() == texts[0][0]
        said = [trace.text([t for t in tokens if t not in model.eos]) for tokens, _ in texts]
        values = [sum(UTILITIES[utility](one, other) for other in said) / 6 for one in said]
        assert [score for _, score in texts] == pytest.approx(values)
        assert values[0] == max(values)
        drawn = returned(run("sample", model, 8, seed, (40, 41), num_return_sequences=6, temperature=0.5))
        assert sorted(tokens for tokens, _ in texts) == sorted(tokens for tokens, _ in drawn)


def test_a_majority_wins_over_the_likeliest_first_sample():
    row = (0.2, 0.8)
    model = TableModel(lambda past: row, 2)
    asked = {"num_samples": 5, "utility": "same text"}
    for seed in range(10):
        drawn = [t for t, _ in returned(run("mbr", model, 1, seed, num_return_sequences=5, **asked))]
        assert run("mbr", model, 1, seed, **asked).output() == max(drawn, key=drawn.count)


def test_samples_side_by_side_are_independent_and_the_first_is_the_plain_one():
    model = TableModel(lambda past: (0.5, 0.3, 0.2) if past[-1] else (0.2, 0.2, 0.6), 3, eos=frozenset({2}))

    def pair(chooser):
        trace = run("sample", model, 2, chooser=chooser, num_return_sequences=2)
        return tuple(tuple(tokens) for tokens, _ in returned(trace))

    alone = Exhaustive().distribution(
        lambda chooser: tuple(run("sample", model, 2, chooser=chooser).output())
    )
    both = Exhaustive().distribution(pair)
    assert both == pytest.approx({(a, b): p * q for a, p in alone.items() for b, q in alone.items()})
    tiny_model = tiny_models.make("llama", seed=3)
    for seed in range(3):
        plain = run("sample", tiny_model, 8, seed, (40, 41)).output()
        assert run("sample", tiny_model, 8, seed, (40, 41), num_return_sequences=4).output() == plain


def test_more_texts_than_samples_are_refused():
    with pytest.raises(ValueError, match="num_return_sequences is 9, but only 8 samples are drawn"):
        run("mbr", tiny_models.make("llama"), num_return_sequences=9)
