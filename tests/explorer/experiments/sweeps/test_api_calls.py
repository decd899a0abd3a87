"""Calls of an API: what exists, what is right, and what a measure of likeness takes for right."""

import difflib

import pytest

from decoders.constraints.grammars import Grammar
from decoders.constraints.kinds import vocabulary_of
from decoders.models import load
from explorer.experiments.sweeps.api_calls import alike, endpoints, exists, grammar


def test_a_wrong_endpoint_counts_as_right_by_the_measure_which_is_not_symmetric():
    """API Pack's ratio: .959 for another endpoint; .25 and .5 for two words and their reverse."""
    urls = [f"https://api.example.com/v2/users/{{user_id}}/{noun}" for noun in ("orders", "offers")]
    assert difflib.SequenceMatcher(None, *urls).ratio() == pytest.approx(0.959, abs=5e-4)
    assert alike(*urls)
    ratios = [difflib.SequenceMatcher(None, *pair).ratio() for pair in (("tide", "diet"), ("diet", "tide"))]
    assert ratios == [0.25, 0.5]


def test_a_call_exists_with_its_own_arguments_only():
    api = endpoints()
    assert len({one.call for one in api}) == 40
    assert all(exists(one.written(7), api) for one in api)
    assert not exists('GET /users/{id} {"id": 100}', api) and not exists("GET /users/{id} {}", api)
    assert not exists('GET /users {"id": 1}', api) and not exists("GET /houses {}", api)


def test_the_constraint_allows_what_exists():
    api, model = endpoints(), load("llama-tiny", "cpu")
    vocabulary = vocabulary_of(model, model.eos)
    constraint = Grammar("lark", grammar(api), vocabulary)

    def passes(text: str) -> bool:
        state = constraint.start()
        for token in model.cut(text):
            if (state := constraint.advance(state, token)) is None:
                return False
        return constraint.may_end(state)

    assert all(passes(one.written(7)) for one in api)
    assert not any(
        passes(text) for text in ("GET /users {} x", 'GET /users/{id} {"id": 0}', "GET /houses {}")
    )
