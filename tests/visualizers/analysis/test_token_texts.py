"""The words of tokens, and which of them another text has not."""

from decoders.trace.trace import Trace
from tests.visualizers.analysis.test_comparison import CAT, DOG, RAN, STOP, THE, lane
from visualizers.analysis.comparison import compare
from visualizers.analysis.token_texts import others, words


def test_words_add_up_to_the_text_and_a_letter_stands_with_its_last_token():
    trace = Trace("any", "Any", {}, 0, {}, [0])
    smile = "☺".encode()
    trace.vocabulary.update({0: b"a", 1: smile[:1], 2: smile[1:], 3: b"\n b", 4: b"\xe2"})
    assert words(trace, [0, 1, 2, 3]) == ["a", "", "☺", "\n b"]
    assert words(trace, [0, 4]) == ["a", "�"] and words(trace, []) == []
    for tokens in ([0, 1, 2, 3], [3, 3, 0], [0, 4]):
        assert "".join(words(trace, tokens)) == trace.text(tokens)


def test_others_are_those_beside_what_both_have_in_one_order():
    assert others([1, 2, 3], [1, 2, 3]) == [False] * 3
    assert others([1, 9, 3, 4], [1, 2, 3]) == [False, True, False, True]
    assert others([], [1]) == [] and others([1, 2], []) == [True, True]


def test_the_mark_of_a_lane_is_the_token_that_its_badge_names():
    """Lane 3 leaves lane 1 at once, lane 2 later: each is marked at its own token, lane 1 at the first."""
    found = compare([lane([THE, DOG, STOP]), lane([THE, CAT, STOP]), lane([RAN, DOG, STOP])])
    one, two, three = found["lanes"]
    for other, position in ((two, 2), (three, 1)):
        assert other["relation"]["position"] == other["parting"]["position"] == position
        assert f"at token {position}" in other["relation"]["badge"]
        assert other["parting"]["node"] == other["nodes"][position - 1]
    assert one["relation"] is None and one["parting"]["position"] == found["divergence"]["position"] == 1
    assert three["parting"]["words"] == "Token 1, the first difference from lane 1, which has ␣the"
    assert one["parting"]["words"] == "Token 1, the first difference from lane 3, which has ␣ran"
    assert two["differs"] == [False, True, False] and three["differs"] == [True, False, False]
    assert one["differs"] == [False] * 3


def test_lanes_that_are_equal_or_cannot_be_compared_have_no_mark():
    for traces in (
        [lane([THE, DOG])] * 2,
        [lane([THE]), lane([THE, DOG])],
        [lane([]), lane([THE])],
        [lane([THE])],
    ):
        assert [one["parting"] for one in compare(traces)["lanes"]] == [None] * len(traces)
