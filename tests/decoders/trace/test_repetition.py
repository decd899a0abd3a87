"""Phrases that stood in a text before, and loops."""

import random

from decoders.trace.repetition import PHRASE, Loop, Repeats, loops


def test_a_stretch_that_is_written_again_and_again_is_a_loop():
    unit = [*range(10, 17)]
    [loop] = loops([1, 2, *unit * 4, 10, 11, 99])
    assert loop == Loop(first=2, period=7, stop=2 + 4 * 7 + 2)
    assert (loop.begins, loop.copies) == (9, 4)


def test_a_short_stretch_is_a_loop_once_a_phrase_repeats():
    assert loops([5] * PHRASE) == []
    assert loops([5] * (PHRASE + 1)) == [Loop(0, 1, PHRASE + 1)]


def test_a_phrase_that_comes_back_later_is_no_loop():
    phrase = [*range(PHRASE)]
    text = [*phrase, 50, 51, *phrase, 52]
    repeats = Repeats()
    assert [found for token in text if (found := repeats.feed(token))] == [(8, 0)]
    assert loops(text) == []


def test_one_loop_may_follow_another():
    found = loops([*range(8)] * 2 + [*range(20, 30)] * 3)
    assert [(loop.first, loop.period, loop.copies) for loop in found] == [(0, 8, 2), (16, 10, 3)]


def test_every_token_of_a_loop_is_the_one_a_period_before():
    luck = random.Random(0)
    for _ in range(200):
        text = [luck.randrange(2) for _ in range(60)]
        for loop in loops(text):
            assert loop.copies >= 2
            assert all(text[at] == loop.goes_on(text, at) for at in range(loop.begins, loop.stop))


def test_a_text_is_read_without_looking_ahead():
    text = [*range(7)] * 3
    repeats, seen = Repeats(), []
    for token in text:
        repeats.feed(token)
        seen.append(repeats.looping)
    assert seen == [False] * 13 + [True] * 8
