"""Words that a person types for processors, and that they do in a lane what they do in `generate`."""

import pytest

from decoders.lane import Lane, Limits
from decoders.logits import token_constraints
from tests.helpers import tiny_models


def cut(text: str) -> list[int]:
    """A letter or a space is a token."""
    return [ord(letter) % 64 for letter in text]


SPACE, A, B = cut(" ab")


def run(model, **parameters):
    given = {"temperature": 0.0} | parameters
    return Lane("sample", [5, 6, 7], {"target": model}, given, limits=Limits(max_new_tokens=24)).run()


def test_a_word_stands_for_itself_and_for_itself_behind_a_space():
    assert token_constraints.sequences("x", "ab, b", cut, 64) == [[SPACE, A, B], [A, B], [SPACE, B], [B]]


def test_quotes_take_a_word_as_it_is_and_numbers_are_tokens():
    assert token_constraints.sequences("x", '"ab", #9,, " b, a"', cut, 64) == [[A, B], [9], cut(" b, a")]
    assert token_constraints.tokens("x", "a, #9", cut, 64) == [A, 9]
    assert token_constraints.biases("x", "a: 2, #9: -.5", cut, 64) == [
        [[SPACE, A], 2.0],
        [[A], 2.0],
        [[9], -0.5],
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bad_words_ids", " , ,", "no words"),
        ("bad_words_ids", "#4000", "the last one is #258"),
        ("sequence_bias", "dog", "such as dog: 3"),
        ("sequence_bias", "dog: nan", "such as dog: 3"),
        ("suppress_tokens", "dog", "put it into bad_words_ids"),
        ("bad_words_ids", "x" * 5000, "at most 4,000"),
        ("exponential_decay_length_penalty", "2.5,1.1", "a whole number and a factor"),
        ("exponential_decay_length_penalty", "2", "a whole number and a factor"),
        ("bad_words_ids", "#258", "min_new_tokens"),
    ],
)
def test_what_is_of_no_use_gets_one_sentence(name, value, said, tiny_model):
    with pytest.raises(ValueError, match=said):
        run(tiny_model(), **{name: value})


def test_a_lane_with_typed_words_equals_generate(tiny_model):
    model = tiny_model()
    plain = run(model).output()
    first, second = plain[0], plain[1]
    words = {
        "bad_words_ids": (
            f"#{second}, th",
            [[second], *token_constraints.sequences("x", "th", model.cut, 259)],
        )
    }
    bias = {"sequence_bias": (f"#{first}: -9", [[[first], -9.0]])}
    begin = {"begin_suppress_tokens": (f"#{first}", [first])}
    never = {"suppress_tokens": (f"#{first}, #{second}", [first, second])}
    length = {"min_new_tokens": (24, 24), "exponential_decay_length_penalty": ([2, 1.5], (2, 1.5))}
    for case in (words, bias, begin, never, length, words | bias | never):
        ours = run(model, **{name: mine for name, (mine, _) in case.items()}).output()
        theirs = {name: ids for name, (_, ids) in case.items()}
        assert ours == tiny_models.generate(model, [5, 6, 7], max_new_tokens=24, **theirs), case
        assert ours != plain or case is length
