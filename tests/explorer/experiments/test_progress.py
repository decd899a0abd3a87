"""How far an experiment is: shares of loops in and after one another, and the line that says so."""

import io
import json
from types import SimpleNamespace

import pytest

from explorer import experiments
from explorer.cli import main
from explorer.experiments import Experiment, Result, progress, progress_line
from explorer.experiments.basis import Basis
from explorer.runs import load_pair


def heard(work) -> list[float]:
    """What is told while `work` runs."""
    shares: list[float] = []
    with progress.watched(shares.append):
        work()
    return shares


def test_a_loop_in_a_loop_fills_the_part_of_its_item():
    def work():
        for rows in progress.each((2, 4)):
            for _ in progress.each(range(rows)):
                pass

    assert heard(work) == pytest.approx([0.25, 0.5, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0])


def test_loops_after_one_another_share_what_is_left():
    def work():
        for _ in progress.each("ab", until=0.4):
            pass
        with progress.part(0.5):
            for _ in progress.each("abc", weight=lambda item: 2 if item == "c" else 1):
                pass
        for _ in progress.each("a"):
            pass

    assert heard(work) == pytest.approx([0.2, 0.4, 0.475, 0.55, 0.7, 0.7, 1.0])


def test_a_loop_that_is_left_early_or_has_nothing_to_do_ends_where_it_would():
    def work():
        for _ in progress.each("ab"):
            for _ in progress.each("abcd"):
                break
            for _ in progress.each(()):
                raise AssertionError

    assert heard(work) == [0.5, 1.0]
    assert list(progress.each("xyz")) == list("xyz") and heard(work) == [0.5, 1.0]  # begins again


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, monkeypatch, seconds: list[float]) -> str:
    """What is shown of five steps at these seconds after the beginning, and one second more at the end."""
    clock = iter([0.0, *seconds, seconds[-1] + 1])
    monkeypatch.setattr(progress_line, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(progress_line.sys, "stderr", stream)
    with progress_line.shown("dice"):
        for _ in progress.each(seconds):
            pass
    return stream.getvalue()


def test_a_file_gets_a_line_for_every_step_with_the_time_that_is_left(monkeypatch):
    lines = told(io.StringIO(), monkeypatch, [10, 30, 60, 200, 600]).splitlines()
    assert lines == [
        "dice: 20% done, about 40 s left",
        "dice: 40% done, about 45 s left",
        "dice: 60% done, about 40 s left",
        "dice: 80% done, about 50 s left",
        "dice: 100% done, about 0 s left",
        "dice: done in 10 min",
    ]


def test_a_file_gets_one_line_for_a_tenth(monkeypatch):
    stream = io.StringIO()
    told(stream, monkeypatch, [float(at) for at in range(1, 101)])
    assert len(stream.getvalue().splitlines()) == 11


def test_a_terminal_has_one_line_that_changes_but_not_too_often(monkeypatch):
    text = told(Terminal(), monkeypatch, [1.0, 1.1, 1.15, 1.5, 9000.0])
    assert text.count("\n") == 1 and text.endswith("\r\x1b[Kdice: done in 2 h 30 min\n")
    shown = [line for line in text.split("\r\x1b[K") if line]
    assert [line.partition(",")[0] for line in shown[:-1]] == [
        "dice: 20% done",
        "dice: 80% done",
        "dice: 100% done",
    ]


def test_what_failed_is_not_called_done(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(progress_line.sys, "stderr", stream)
    with pytest.raises(ValueError, match="no"), progress_line.shown("dice"):
        raise ValueError("no")
    assert stream.getvalue() == "" and not progress._hearers


def test_the_command_says_how_far_it_is_and_prints_the_answer_alone(monkeypatch, capsys):
    """Progress goes to the error stream, the table or JSON to the output."""

    def run(models) -> Result:
        rows = [[side, 1 / 6] for side in progress.each(range(1, 7))]
        return Result(["side", "share"], rows, ["All are alike."])

    says = lambda answer: f"{len(answer['rows'])} sides."
    dice = Experiment("dice", "Is it fair?", "What falls?", run, says, lambda answer: Basis(exact="a proof"))
    monkeypatch.setattr(experiments, "find", lambda name: dice)
    models = {"target": SimpleNamespace(name="chance")}
    monkeypatch.setattr(load_pair, "load_models", lambda *asked: models)
    for given in ([], ["--json"]):
        main(["experiment", "dice", *given])
        out, err = capsys.readouterr()
        lines = err.splitlines()
        assert [line.partition(" done, about ")[0] for line in lines[:-1]] == [
            f"dice: {share}%" for share in (17, 33, 50, 67, 83, 100)
        ]
        assert lines[-1].startswith("dice: done in ") and "done" not in out
    assert json.loads(out)["finding"] == "6 sides."
