"""llguidance in a process of its own: a text that makes it hang or crash costs one sentence."""

import sys

import pytest

from decoders.constraints import llguidance_worker
from decoders.constraints.engine_process import EngineProcess
from decoders.constraints.grammars import Grammar
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.problem import ConstraintProblem

DEEP = "start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(9000)) + 'r9000: "a"'  # overruns its stack
ENDLESS = '{"type": "integer", "multipleOf": 1000003}'  # computes for minutes


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary([bytes([byte]) for byte in range(128)], [0], [0], lambda text: list(text.encode()))


def test_a_crash_costs_one_sentence_and_the_next_text_works(vocabulary):
    before = llguidance_worker._process.lives
    with pytest.raises(ConstraintProblem, match="cannot be used: llguidance crashed over it"):
        Grammar("lark", DEEP, vocabulary)
    constraint = Grammar("lark", 'start: "a"', vocabulary)
    assert constraint.allowed(constraint.start()).nonzero()[:, 0].tolist() == [ord("a")]
    assert llguidance_worker._process.lives > before


@pytest.mark.skipif(sys.platform == "win32", reason="no timer of the kind there")
def test_a_hang_costs_a_second_of_computing_and_one_sentence(vocabulary):
    with pytest.raises(ConstraintProblem, match="cannot be used: llguidance took more than 1 second for it"):
        Grammar("json_schema", ENDLESS, vocabulary)
    assert Grammar("regex", "ab", vocabulary).forced(Grammar("regex", "ab", vocabulary).start())


def test_a_text_that_passed_is_not_tried_again(vocabulary, monkeypatch):
    Grammar("regex", "[a-f]{3}", vocabulary)
    monkeypatch.setattr(llguidance_worker._process, "ask", lambda *request: pytest.fail("asked again"))
    Grammar("regex", "[a-f]{3}", vocabulary)


def test_more_vocabularies_than_it_keeps(monkeypatch):
    """Each is sent again when it is unknown, so none is mistaken for another."""
    many = [
        Vocabulary([bytes([97 + n]), b"."], [], [], lambda text: [0])
        for n in range(llguidance_worker.VOCABULARIES + 2)
    ]
    for _ in range(2):
        for n, one in enumerate(many):
            one.made.pop("passed", None)
            constraint = Grammar("regex", chr(97 + n), one)
            assert constraint.allowed(constraint.start()).tolist() == [True, False]


def test_a_system_that_starts_no_process_is_named(vocabulary, monkeypatch):
    def none(self):
        raise OSError("not here")

    monkeypatch.setattr(EngineProcess, "start", none)
    monkeypatch.setattr(llguidance_worker._process, "process", None)
    with pytest.raises(ConstraintProblem, match="this system starts none"):
        Grammar("regex", "a{3}b", vocabulary)


def test_a_process_that_does_not_start_in_time_says_so_and_not_that_it_crashed():
    class Slow(EngineProcess):
        def start(self):
            super().start()
            return self.send({}, 0.0, "the engine took more than 0 seconds to start")

    process = Slow("decoders.constraints.llguidance_worker", "the engine", 5.0, "too long")
    assert process.ask("text") == {"problem": "the engine took more than 0 seconds to start"}
    assert process.process is None
