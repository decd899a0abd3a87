"""Conditions as they are typed, and the steps of small traces at which they hold."""

import math

import pytest

from decoders.refusal import Refusal
from decoders.trace.breakpoints import MOST, Condition, Kind, Watch, differ, parse, parse_all
from decoders.trace.events import Commit, Distribution, Forward, Propose, Step, Verdict
from decoders.trace.scores import Rank

WORDS = {10: b" dog", 11: b"cat", 12: b"\n"}


@pytest.mark.parametrize(
    ("typed", "condition"),
    [
        ("entropy > 4", Condition(Kind.ENTROPY, 4.0)),
        ("  Entropy  >  .5 ", Condition(Kind.ENTROPY, 0.5)),
        ("rejection at depth 2", Condition(Kind.REJECTION, 2.0)),
        ("p(end) > 0.5", Condition(Kind.END, 0.5)),
        ("the lead changes", Condition(Kind.LEAD)),
        ("lanes differ", Condition(Kind.DIFFER)),
        ("token = dog", Condition(Kind.TOKEN, token="dog")),
        ("acceptance < .5", Condition(Kind.ACCEPTANCE, 0.5)),
        ("a phrase repeats", Condition(Kind.REPEATS)),
    ],
)
def test_a_condition_is_read_and_written_as_it_is_typed(typed, condition):
    assert parse(typed) == condition == parse(str(condition))


@pytest.mark.parametrize("typed", ["", "entropy", "entropy > x", "lanes differ 3", "token =", "boredom > 1"])
def test_what_cannot_be_read_is_refused_with_all_forms(typed):
    with pytest.raises(Refusal, match="it can when: entropy > 4, rejection at depth 1"):
        parse(typed)


def test_as_many_as_there_can_be_each_once():
    assert parse_all(["lanes differ", "Lanes  differ"]) == (Condition(Kind.DIFFER),)
    with pytest.raises(Refusal, match="at most, not 9"):
        parse_all(["lanes differ"] * (MOST + 1))


def found(condition: str, *steps: list, ends: tuple = ()) -> list[list[str]]:
    """What holds at each step of a lane with the prompt 0, 1, 2."""
    watch = Watch([parse(condition)], [0, 1, 2], WORDS, ends)
    return [[stop.sentence for stop in watch.feed(Step(i, events))] for i, events in enumerate(steps)]


def token(node: int, token: int, bits: float = 1.0, *top: list) -> list:
    offered = Distribution(node - 1, "target", list(top) or [[token, -0.1]], 0.1, bits * math.log(2))
    return [offered, Propose(node, node - 1, token, -0.1, "target"), Commit([node], [-0.1])]


def test_entropy_above_a_number_of_bits():
    assert found("entropy > 4", token(3, 10, 3.9), token(4, 10, 4.5)) == [
        [],
        ["entropy 4.5 bits before “␣dog”, at token 2"],
    ]


def test_a_token_with_or_without_a_space():
    assert found("token = dog", token(3, 11), token(4, 10)) == [[], ["token “␣dog”, at token 2"]]
    assert found("token = do", token(3, 10)) == [[]]


def test_the_probability_that_the_text_ends():
    end = [5, math.log(0.6)]
    assert found("p(end) > .5", token(3, 11, 1.0, [11, math.log(0.4)], end), ends=(5,)) == [
        ["p(end) .6 before “cat”, at token 1"]
    ]
    assert found("p(end) > .5", token(3, 11, 1.0, [11, math.log(0.4)], end)) == [[]]  # no end is known


def round_of(node: int, fates: list[str]) -> list:
    """Drafted nodes from `node` on, one after the other; all that is accepted is final."""
    nodes = range(node, node + len(fates))
    events = [Propose(n, n - 1, 11, -0.5, "draft") for n in nodes] + [
        Forward("target", "verify", 2, 1, 0.0, 0.1)
    ]
    events += [Verdict(n, fate) for n, fate in zip(nodes, fates, strict=True)]
    return [*events, Commit([n for n, fate in zip(nodes, fates, strict=True) if fate == "accepted"], [-1.0])]


def test_a_rejection_at_a_depth_of_the_draft():
    step = round_of(3, ["accepted", "rejected"])
    assert found("rejection at depth 1", step) == [[]]
    assert found("rejection at depth 2", step) == [["rejection at depth 2, at token 2"]]


def test_acceptance_of_the_last_ten_rounds():
    good, bad = ["accepted"], ["rejected"]
    fates = [good] * 6 + [bad] * 5
    made = found("acceptance < .6", *(round_of(3, one) for one in fates))
    assert made[:10] == [[]] * 10 and made[10] == ["acceptance of the last 10 rounds .5, at token 1"]


def test_another_text_takes_the_lead():
    def beam(node: int, parent: int, rank: int) -> list:
        return [Propose(node, parent, 10, -1.0, "target"), Rank(node, "sum_logprob", -1.0, rank=rank)]

    steps = [beam(3, 2, 1) + beam(4, 2, 2), beam(5, 3, 1) + beam(6, 4, 2), beam(7, 5, 2) + beam(8, 6, 1)]
    assert found("the lead changes", *steps) == [[], [], ["the lead changes, at token 1"]]


def test_a_phrase_repeats():
    made = found("a phrase repeats", *(token(3 + i, 20 + i % 7) for i in range(15)))
    assert [i for i, one in enumerate(made) if one] == [12]


def test_where_texts_differ():
    assert differ([[1, 2, 3], [1, 2], [1, 2, 3, 4]]) is None
    assert differ([[1, 2, 3], [1, 5], [1, 2]]) == 1
    assert differ([]) is None
