"""Searches with penalties and forbidden words: they find what the model says as its processors leave it."""

import math
from functools import cache

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.events import Commit, Distribution, Propose
from tests.helpers import tiny_models

ASKED = {
    "a penalty": {"repetition_penalty": 1.7},
    "no pair twice": {"no_repeat_ngram_size": 2},
    "words": {"suppress_tokens": "#1", "begin_suppress_tokens": "#3"},
}


def run(strategy: str, model, prompt=(0, 2), new_tokens=4, chooser=None, **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane(strategy, list(prompt), {"target": model}, parameters, 0, limits, chooser).run()


@cache
def table(seed: int) -> TableModel:
    """A random model of four tokens, one of which ends a text."""
    return TableModel(random_table(seed, 4, 2.0), 4, frozenset({0}))


@cache
def texts_of(seed: int, asked: str) -> dict[tuple[int, ...], float]:
    """The law of such a model with one of ASKED."""
    return law(table(seed), ASKED[asked])


def law(model, asked: dict) -> dict[tuple[int, ...], float]:
    """Text -> its probability when drawn one token at a time with these processors."""
    return Exhaustive().distribution(
        lambda chooser: tuple(run("sample", model, chooser=chooser, **asked).output())
    )


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("given", [{}, {"frontier": "depth first"}], ids=str)
def test_best_first_finds_the_likeliest_text_that_could_be_drawn(asked, given):
    for seed in range(6):
        texts = texts_of(seed, asked)
        found = run("best_first", table(seed), **given, **ASKED[asked])
        assert texts[tuple(found.output())] == pytest.approx(max(texts.values()))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("strategy", ["lattice", "value_beam", "mirostat", "diverse_beam", "best_first"])
def test_texts_could_be_drawn_and_keep_the_model_s_own_log_probabilities(strategy, asked):
    given = {"scorer": "length"} if strategy == "value_beam" else {}
    changed = 0
    for seed in range(8):
        found, plain = (run(strategy, table(seed), **given, **more) for more in (ASKED[asked], {}))
        changed += found.output() != plain.output()
        assert texts_of(seed, asked)[tuple(found.output())] > 0
        tokens = [0, 2, *found.output()]
        told = [p for s in found.steps for commit in s.of(Commit) for p in commit.logprobs]
        for at, logprob in enumerate(told, 2):
            row = random_table(seed, 4, 2.0)(tuple(tokens[:at]))
            assert logprob == pytest.approx(math.log(row[tokens[at]]), abs=1e-5)
    assert changed


def test_one_group_of_diverse_beams_is_beam_search():
    model, prompt = tiny_models.make(), [40, 41, 42, 40, 41]
    given = {"repetition_penalty": 1.4, "no_repeat_ngram_size": 2, "num_beams": 3, "length_penalty": 0.0}
    for new_tokens in (6, 12):
        found = run("diverse_beam", model, prompt, new_tokens, num_beam_groups=1, **given)
        assert found.output() == run("beam", model, prompt, new_tokens, **given).output()


def test_a_value_that_says_nothing_leaves_beam_search():
    model, prompt = tiny_models.make(), [40, 41, 42, 40, 41]
    given = {"no_repeat_ngram_size": 1, "suppress_tokens": "#143", "num_beams": 3, "length_penalty": 0.0}
    found = run("value_beam", model, prompt, 8, likelihood_weight=1.0, candidates=30, **given)
    assert found.output() == run("beam", model, prompt, 8, **given).output()


def test_mirostat_without_a_limit_draws_as_sampling_does():
    model = TableModel(random_table(5, 4, 2.0), 4)
    asked, open_limit = {"repetition_penalty": 1.7}, {"tau": 20.0, "rate": 0.0, "version": "2"}
    found = Exhaustive().distribution(
        lambda chooser: tuple(run("mirostat", model, chooser=chooser, **open_limit, **asked).output())
    )
    assert found == pytest.approx(law(model, asked))


@pytest.mark.parametrize("strategy", ["lattice", "value_beam", "mirostat", "diverse_beam", "best_first"])
def test_where_no_token_is_left_the_lane_ends_with_a_sentence(strategy):
    model = TableModel(lambda past: [0.5, 0.3, 0.2], 3)
    given = {"scorer": "length"} if strategy == "value_beam" else {}
    found = run(strategy, model, (0, 1, 2), 9, no_repeat_ngram_size=1, **given)
    assert found.output() == [] and found.ended.startswith("The processors left no token")


def test_what_the_processors_left_is_told():
    model = TableModel(random_table(1, 4, 2.0), 4)
    found = run("best_first", model, suppress_tokens="#1")
    told = [e for s in found.steps for e in s.of(Distribution) if e.view == "processed"]
    assert told and all(1 not in dict(e.top) for e in told)
    assert 1 not in {e.token for s in found.steps for e in s.of(Propose)}
