"""Strategies from a file outside the package: found by name, decoded like others, refused in a sentence."""

import pytest

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel

OWN = '''
from decoders.registry import strategy

@strategy(name="{name}", title="No echo", family="sampling", badge=lambda parameters: "deterministic")
def own(lane):
    """At every position the most probable token that is not the one before it."""
    last = None
    while lane.more:
        logits = lane.score([lane.tip])
        logprobs = lane.distribution([lane.tip], logits)[0]
        token = next(int(one) for one in logits[0].topk(2).indices if int(one) != last)
        lane.commit([lane.propose(lane.tip, token, float(logprobs[token]))], [float(logprobs[token])])
        last = token
        yield
'''


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """The registry is as before after each test."""
    registry.strategies()
    monkeypatch.setattr(registry, "_STRATEGIES", dict(registry._STRATEGIES))


def test_a_file_of_ones_own_declares_a_strategy(tmp_path):
    path = tmp_path / "my.py"
    path.write_text(OWN.format(name="no_echo"), "utf-8")
    assert registry.include(path) == ["no_echo"] and registry.get("no_echo").title == "No echo"
    model = TableModel(lambda text: [0.6, 0.3, 0.1], 3)
    trace = Lane("no_echo", [0], {"target": model}, {}, limits=Limits(4)).run()
    assert trace.output() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "declares no strategy"),
        ("x = (\n", r"line 1: '\(' was never closed"),
        ("\n\nraise KeyError('why')\n", "line 3: 'why'"),
        (OWN.format(name="greedy"), "Two strategies are called greedy"),
        (OWN.format(name="half_done") + "\nnope\n", "line 16: name 'nope' is not defined"),
    ],
)
def test_a_file_that_is_no_use_is_refused_in_a_sentence_and_leaves_nothing(tmp_path, text, sentence):
    path, before = tmp_path / "my.py", set(registry.strategies())
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=sentence):
        registry.include(path)
    assert set(registry.strategies()) == before


def test_a_file_that_is_not_there_or_no_python_is_said(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        registry.include(tmp_path / "nope.py")
    (tmp_path / "my.txt").write_text("x", "utf-8")
    with pytest.raises(ValueError, match="must end in .py"):
        registry.include(tmp_path / "my.txt")


def test_a_file_that_is_named_from_where_one_stands_is_refused_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("\n\nraise KeyError('why')\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="mine.py, line 3: 'why'"):
        registry.include("mine.py")
