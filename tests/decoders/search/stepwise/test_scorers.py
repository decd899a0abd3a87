"""Scorers say what is true of a text; each has hand-made texts, and JSON every prefix of real values."""

import json

import pytest
import torch

from decoders.heads import Reward, Target, read_answers, take_taps
from decoders.lane import Lane
from decoders.models.table_model import TableModel
from decoders.search.stepwise import scorers
from decoders.search.stepwise.scorers import Scorer, Text, arithmetic, is_json, json_begins, keyword, length
from tests.helpers import tiny_models


@pytest.mark.parametrize(
    ("prompt", "written", "whole", "share"),
    [
        ("Q\n", "12+6=18\n18-3=15\n", True, 1.0),
        ("Q\n", "12+6=18\n18-3=16\n", True, 0.5),
        ("Q\n", "7+5+0=12\n2+3*4=14", True, 1.0),
        ("347+85=", "432", True, 1.0),
        ("347+85=", "431", True, 0.0),
        ("1+1=3\n", "so", True, 0.0),
        ("347+85=", "4", False, 1.0),  # more digits may come
        ("347+85=", "5\n", False, 0.0),
        ("start 3; +4; *2\n", "+4 -> 7\n*2 -> 14\nanswer 14", True, 1.0),
        ("start 3; +4; *2\n", "+4 -> 8\n*2 -> 16\nanswer 16", True, 0.5),
    ],
)
def test_equations_are_checked_exactly(prompt, written, whole, share):
    assert arithmetic(Text(prompt, written, whole), {}) == share


VALUES = [
    {"a": [1.5e-3, True, None, 'x\\\u00e9"\n'], "b": {}},
    [],
    [[-0.5], False],
    "tr\u1234ue",
    -12,
    {"": ""},
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_every_beginning_of_json_is_one_and_other_texts_are_none(value):
    for indent in (None, 1):
        text = json.dumps(value, indent=indent)
        assert all(json_begins(text[:i]) for i in range(len(text) + 1))
        assert is_json(Text("", text, True), {}) == 1.0


@pytest.mark.parametrize(
    "text", ["{a", "[1,]", "[1 2", '{"a" 1', "tru3", "01", "NaN", "{}x", '"\\x', "[}", "--"]
)
def test_what_can_never_become_json(text):
    assert not json_begins(text) and not is_json(Text("", text, False), {})


def test_words_are_counted_and_found():
    given = {"words": 4, "keywords": "dog, Red ball"}
    assert length(Text("", "one two", False), given) == 1.0
    assert length(Text("", "one two", True), given) == 0.5
    assert length(Text("", "a b c d e", False), given) == 0.8
    assert keyword(Text("dog", "A red ball.", True), given) == 0.5
    assert keyword(Text("", "The DOG has a red ball", False), given) == 1.0
    assert keyword(Text("", "dogs", True), given) == 0.0


def test_what_a_scorer_lacks_is_said():
    assert "needs keywords" in scorers.unusable({"scorer": "keyword", "keywords": " ,"})
    table = TableModel(lambda text: [0.5, 0.5], 2)
    assert "has no reward head" in scorers.unscored({"scorer": "reward"}, table)
    assert scorers.unscored({"scorer": "json"}, table) is None


def test_a_text_is_judged_once_and_the_reward_head_reads_what_was_written():
    model = tiny_models.make()
    torch.manual_seed(0)
    model.heads["reward"] = Reward(Target.of(model.model)).eval()
    lane = Lane("greedy", [40, 41, 42], {"target": model})
    lane.parameters = {"scorer": "reward"}
    scorer = Scorer(lane)
    node = lane.propose(lane.propose(lane.tip, 50, None), 51, None)
    said = [scorer.score(node, whole) for whole in (True, False, True)]
    taps = take_taps(model.model, torch.tensor([[40, 41, 42, 50, 51]]))
    hidden, log_p = read_answers(taps, torch.tensor([2]), 2)
    assert torch.equal(hidden[0], taps.hidden[0, 2:]) and log_p[0, 0] == 0
    assert log_p[0, 2] == pytest.approx(float(taps.logits[0, 3].log_softmax(-1)[51]))
    wanted = model.heads["reward"].scores(hidden[0], log_p[0])
    said_now = [float(wanted[q][-1]) for q in ("outcome", "prefix", "outcome")]
    assert said == pytest.approx(said_now, abs=1e-5) and scorer.calls == 2
    lane.close()
