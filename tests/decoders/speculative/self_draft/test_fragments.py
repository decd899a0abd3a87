"""Rounds that end with a fragment: cutting costs speed and nothing else."""

from itertools import accumulate

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.capabilities import Capability
from decoders.heads import Medusa
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.table_model import Table, exact_distribution
from decoders.speculative.self_draft.fragments import SAME, TYPICAL
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Commit, Note, Verdict
from explorer.tasks.verilog import marked, unmarked
from tests.helpers.losslessness import law_of_rounds
from tests.helpers.stateful_tables import StatedTable

MARK, LENGTH = 2, 4
PROMPT = "// module gate: data is a and b; done is not a\n"


class Guesses:
    """Heads that say anything of a text, at each of three places."""

    sees, reach = Medusa.sees, Medusa.reach

    def block(self, text: tuple[int, ...]) -> torch.Tensor:
        draw = torch.Generator().manual_seed(hash(text) % 2**31)
        return torch.randn(3, 3, generator=draw)


class Headed(StatedTable):
    """A table with heads, whose tokens are a, b and c."""

    capabilities = frozenset({Capability.FULL_DISTRIBUTION, Capability.HIDDEN_STATES})

    def __init__(self, table: Table, vocabulary: int):
        super().__init__(table, vocabulary)
        self.heads = {"medusa": Guesses()}

    def cut(self, text: str) -> list[int]:
        return self.encode(text)


@pytest.mark.parametrize("widths", [[1, 1, 1], [2, 2, 1]])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_whatever_is_cut_the_text_has_the_targets_distribution(temperature, widths):
    target = Headed(random_table(3, 3, 1.5), 3)
    parameters = {"temperature": temperature, "widths": widths, "mark": "c"}
    law = law_of_rounds(Exhaustive(), "fragments", {"target": target}, parameters, LENGTH)
    assert distance(law, exact_distribution(target, (0,), LENGTH, shape_of(parameters))) < 1e-12


def cut(**parameters) -> list[int]:
    """How many tokens were cut in each round of a long sampled text of the table."""
    target = Headed(random_table(3, 3, 1.5), 3)
    settings = {"temperature": 1.0, "widths": [3, 3, 3], "mark": "c"} | parameters
    trace = Lane("fragments", [0], {"target": target}, settings, limits=Limits(60)).run()
    return [sum(e.status == "pruned" for e in step.of(Verdict)) for step in trace.steps]


def test_the_test_above_has_seen_cuts():
    assert sum(cut()) > 3 and sum(cut(whole=False)) == 0


def test_typical_acceptance_is_relaxed_and_the_targets_own_choice_is_lossless():
    models, asked = {"target": Headed(random_table(3, 3, 1.5), 3)}, {"temperature": 1.0, "mark": "c"}
    badges = [
        Lane("fragments", [0], models, asked | {"acceptance": how}, limits=Limits(4)).run().badge
        for how in (SAME, TYPICAL)
    ]
    assert badges == ["exact because drafts are deterministic", "relaxed"]


@pytest.fixture(scope="module")
def llama_tiny():
    return load("llama-tiny")


def decoded(model, strategy: str, prompt: str = "Once upon a time", count: int = 60, **parameters):
    return Lane(strategy, model.encode(prompt), {"target": model}, parameters, limits=Limits(count)).run()


def test_the_text_is_greedys_and_rounds_end_with_fragments(llama_tiny):
    """Every round but the last ends with a mark if what it accepted, its first token included, holds one."""
    greedy = decoded(llama_tiny, "greedy")
    whole, plain = (decoded(llama_tiny, "fragments", mark=",", whole=whole) for whole in (True, False))
    assert greedy.output() == whole.output() == plain.output()
    (mark,), text = llama_tiny.cut(","), whole.output()
    sizes = [len(e.nodes) for step in whole.steps for e in step.of(Commit)]
    with_mark = 0
    for end, size in list(zip(accumulate(sizes), sizes, strict=True))[1:-1]:
        run = text[end - 1 - size : end - 1]  # the round's first token and what it accepted
        with_mark += mark in run
        assert mark not in run or run[-1] == mark
    assert with_mark >= 2
    assert plain.costs.target_forwards <= whole.costs.target_forwards < greedy.costs.target_forwards


def test_without_marks_these_are_the_plain_heads(llama_tiny):
    """What is cut and what not are one run, and the lane says so."""
    whole, plain = (decoded(llama_tiny, "fragments", count=24, whole=whole) for whole in (True, False))
    assert whole.output() == plain.output() and len(whole.steps) == len(plain.steps) < 24
    notes = [e.text for e in whole.steps[0].of(Note)]
    assert notes and "Medusa" in notes[0]


def test_the_shipped_model_writes_verilog_with_marks():
    """With heads of its own it takes less than half of greedy's forwards."""
    trace = decoded(load("llama-tiny-verilog"), "fragments", PROMPT, 200)
    assert 2 * trace.costs.target_forwards < trace.costs.new_tokens
    marks, text = trace.text().partition("<|endoftext|>")[0], unmarked(trace.text())
    assert marks == marked(unmarked(marks))
    assert text.startswith(
        "module gate(\n  input a,\n  input b,\n  output data,\n  output done\n);\n"
        "  assign data = a & b;\n  assign done = ~a;\nendmodule\n"
    )
