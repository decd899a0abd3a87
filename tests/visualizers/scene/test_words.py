"""The rules every view leans on: how a token is shown and fitted, and how numbers are printed."""

import pytest

from decoders.trace.token_text import visible
from visualizers.registry import build, names
from visualizers.scene.words import cells, fit, probability, three_digits


def test_white_space_and_split_bytes_are_shown():
    assert [visible(b) for b in (b" the", b"\n", b"\t", b"\xe2\x96", b" ")] == [
        "␣the",
        "↵",
        "⇥",
        "‹e2 96›",
        "␣",
    ]


def test_a_token_is_fitted_whole_then_bare_then_cut_then_not_at_all():
    width = 12 * 0.602  # of one character
    assert fit("␣with", 5 * width, 12) == "␣with"
    assert fit("␣with", 4 * width, 12) == "with"
    assert fit("␣friend", 4 * width, 12) == "fri…"
    assert fit("␣friend", 2.9 * width, 12) == ""


def test_wide_characters_count_two_and_combining_marks_none():
    assert (cells("日本"), cells("e\u0301"), cells("🙂")) == (4, 1, 2)


@pytest.mark.parametrize(
    ("p", "short"), [(0.634, ".63"), (1.0, "1.00"), (0.0042, ".0042"), (None, "?"), (0.0, ".00")]
)
def test_probabilities_are_short(p, short):
    assert probability(p) == short


def test_ratios_have_three_significant_digits():
    p, q = 0.035172, 0.065082
    assert three_digits(p) == ".0352" and three_digits(q) == ".0651"
    assert abs(float(three_digits(p)) / float(three_digits(q)) - p / q) < 0.001
    assert [three_digits(v) for v in (0.9994, 0.9997, 1.0, 0.0, None)] == [".999", "1.00", "1.00", "0", "?"]


def test_views_are_found_and_an_unknown_one_is_named():
    assert {"beam_tree", "draft_rounds", "text"} <= set(names())
    with pytest.raises(ValueError, match="no view named 'nothing'"):
        build("nothing", None)
