"""Words that a person puts on a canvas: they stay, the model writes around them, misfits are sentences."""

import pytest

from decoders.diffusion.fixed_words import parsed, placed, with_word
from decoders.lane import Lane, Limits
from decoders.models.tabular_denoiser import TabularDenoiser


def test_places_and_words_are_read():
    assert parsed(" 5: cat;12 :Once; ") == [(5, "cat"), (12, "Once")] and parsed("") == []


@pytest.mark.parametrize("text", ["cat", "0: cat", "5:", "x: cat", "-1: a", '3: ""'])
def test_anything_else_is_a_sentence(text):
    with pytest.raises(ValueError, match="write position: word, such as"):
        parsed(text)


def test_words_are_put_on_their_places():
    assert placed("2: ab", 10, 20, lambda word: list(word.encode())) == {11: 32, 12: 97, 13: 98}


@pytest.mark.parametrize("text, sentence", [("9: ab", "does not fit"), ("1: abc; 2: d", "overlaps another")])
def test_words_that_do_not_fit_are_refused(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        placed(text, 0, 9, lambda word: list(word.encode()))


def test_a_quoted_word_is_put_there_as_it_is():
    text = '2: "a;\\"b"; 7: c'
    assert parsed(text) == [(2, '"a;\\"b"'), (7, "c")]
    where = placed(text, 10, 20, lambda word: list(word.encode()))
    assert bytes(where[p] for p in range(11, 15)) == b'a;"b' and where[16] == 32
    with pytest.raises(ValueError, match="not a valid quoted word"):
        placed('2: "\\x"', 10, 20, lambda word: list(word.encode()))


@pytest.mark.parametrize("word, exactly", [("cat", False), (" cat", True), ('a "b"; c', False), ("\n", True)])
def test_a_word_is_added_and_read_again(word, exactly):
    text = with_word("2: old; 30: end", 2, word, exactly)
    assert [at for at, _ in parsed(text)] == [30, 2]
    where = placed(text, 0, 40, lambda characters: list(characters.encode()))
    stands = bytes(where[p] for p in sorted(where) if p < 25).decode()
    assert stands == (word if exactly else " " + word)


def run(tiny_model, words, tokens=8):
    target = tiny_model("masked")
    return Lane(
        "masked_diffusion", [40, 41], {"target": target}, {"fixed_words": words}, 0, Limits(tokens)
    ).run()


def test_a_fixed_word_is_in_the_text(tiny_model):
    found = run(tiny_model, "1: a", 3)
    word = tiny_model("masked").encode_after([40, 41], "a")
    assert found.output()[: len(word)] == word
    assert found.costs.target_forwards <= 3 - len(word)  # it takes none


def test_one_beyond_the_canvas_ends_the_lane_with_a_sentence(tiny_model):
    assert run(tiny_model, "20: a").ended == "'a' does not fit at position 20: the canvas has 8 positions."


def test_the_model_writes_around_it():
    """Two answers; the second half that a person fixes decides the first."""
    target = TabularDenoiser({(0, 0): 0.9, (1, 1): 0.1}, 2)
    free = Lane("masked_diffusion", [0], {"target": target}, limits=Limits(2)).run()
    fixed = Lane("masked_diffusion", [0], {"target": target}, {"fixed_words": "2: b"}, limits=Limits(2)).run()
    assert free.output() == [0, 0] and fixed.output() == [1, 1]
