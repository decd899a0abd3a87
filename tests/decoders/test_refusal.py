"""What a sentence quotes of another library: whole words, on one line."""

from decoders.refusal import said_by


def test_a_text_is_quoted_on_one_line_without_its_full_stop():
    assert said_by("expected: a number,\n got text.") == "expected: a number, got text"


def test_a_long_text_is_cut_between_words():
    assert said_by("one two three four", 12) == "one two …"
    assert said_by("x" * 40, 18) == "x" * 17 + "…"


def test_an_error_that_says_nothing_is_named():
    assert said_by(MemoryError()) == "MemoryError"
