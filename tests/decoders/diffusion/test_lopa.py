"""LoPA: which canvas goes on, against a hand example, its threshold, and tables whose joint is known."""

import math
from dataclasses import dataclass, field

import pytest
import torch

from decoders.diffusion.methods.lopa import ANCHOR
from decoders.engine.engine import Work
from decoders.models.tabular_denoiser import TabularDenoiser, TabularScorer
from decoders.trace.events import Cell, Forward, Propose, Verdict
from decoders.trace.scores import Score
from tests.decoders.diffusion.test_chain_verify import LENGTH, run, table


@dataclass(eq=False)
class Scripted(TabularDenoiser):
    """A model over a and b whose most likely token is a everywhere, with the probabilities of a script:
    filled positions of the answer -> position -> probability.
    """

    script: dict = field(default_factory=dict)

    def attach(self, tree):
        return ScriptedScorer(self)


class ScriptedScorer(TabularScorer):
    def denoise(self, canvases, start, stop):
        self.work = Work(tokens=sum(map(len, canvases)), rows=len(canvases))
        rows = []
        for canvas in canvases:
            answer = canvas[start:stop]
            filled = frozenset(i for i, token in enumerate(answer, 1) if token != self.engine.mask)
            known = self.engine.script.get(filled, {})
            sure = [known.get(i, 0.5) for i in range(1, len(answer) + 1)]
            rows.append([[p, 1 - p] for p in sure])
        return torch.tensor(rows, dtype=torch.float64).log()


def scripted(script):
    return Scripted({(0, 0, 0): 1.0}, 2, script={frozenset(k): v for k, v in script.items()})


EXAMPLE = {
    (): {1: 0.95, 2: 0.70, 3: 0.60},
    (1,): {2: 0.72, 3: 0.66},
    (1, 2): {3: 0.97},
    (1, 3): {2: 0.65},
}


def test_the_worked_example():
    """The branch that fills position 2 leaves .97 for position 3, which its own row fills at once."""
    found = run("lopa", scripted(EXAMPLE), {"branches": 2}, 3)
    assert found.costs.target_forwards == 2 and found.output() == [0, 0, 0]
    assert run("masked_diffusion", scripted(EXAMPLE), {"policy": "threshold"}, 3).costs.target_forwards == 3
    last = found.steps[1]
    scores = {e.level: e.total for e in last.of(Score)}
    assert scores.pop(ANCHOR) == pytest.approx(0.69)
    assert list(scores.values()) == pytest.approx([0.97, 0.65])
    assert [v.status for v in last.of(Verdict)] == ["accepted", "pruned"]
    states = {c.position: c.state for c in last.of(Cell) if c.level is None}
    assert states == {2: "lookahead", 3: "committed"}


def test_the_verdict_says_how_unsure_the_extra_token_was():
    won = next(v for v in run("lopa", scripted(EXAMPLE), {"branches": 2}, 3).steps[1].of(Verdict))
    assert won.p == pytest.approx(0.70)
    assert won.reason == (
        "mean confidence .97, the anchor's .69; the branch's own token had p .7 when it was guessed"
    )


def test_a_tie_goes_to_the_anchor_and_is_flagged():
    script = {(): {1: 0.95, 2: 0.7, 3: 0.6}, (1,): {2: 0.8, 3: 0.8}, (1, 2): {3: 0.8}, (1, 3): {2: 0.7}}
    step = run("lopa", scripted(script), {"branches": 2}, 3).steps[1]
    assert [v.status for v in step.of(Verdict)] == ["pruned", "pruned"]
    assert [s.parts["tie"] for s in step.of(Score)] == [1, 1, 0]


def test_without_branches_it_is_the_threshold():
    for seed in range(20):
        for parameters in ({}, {"block_length": 4}):
            one, kept = table(seed), {"tau": 0.6} | parameters
            want = run("masked_diffusion", one, {"policy": "threshold"} | kept)
            found = run("lopa", one, {"branches": 0} | kept)
            assert found.output() == want.output()
            assert found.costs.target_forwards == want.costs.target_forwards
            assert found.costs.target_tokens == want.costs.target_tokens


def test_more_branches_need_fewer_forwards_and_write_less_probable_texts():
    tables = [table(seed) for seed in range(100)]
    forwards, logprob, tokens = [], [], []
    for branches in (0, 1, 2, 4):
        found = [run("lopa", one, {"branches": branches}) for one in tables]
        forwards.append(sum(f.costs.target_forwards for f in found) / len(tables))
        tokens.append(sum(f.costs.target_tokens for f in found))
        texts = [one.joint[tuple(f.output())] for one, f in zip(tables, found, strict=True)]
        logprob.append(sum(map(math.log, texts)) / len(tables))
    assert forwards == pytest.approx([6.0, 4.01, 3.93, 3.84], abs=0.08)
    assert forwards == sorted(forwards, reverse=True) and tokens == sorted(tokens)
    assert max(logprob[1:]) < logprob[0]


def test_a_forward_has_a_row_for_each_canvas():
    found = run("lopa", table(0), {"branches": 3})
    for step in found.steps:
        (forward,) = step.of(Forward)
        branches = [e for e in step.of(Propose) if e.source == "lookahead"]
        assert forward.rows == 1 + len(branches) and forward.tokens == forward.rows * (1 + LENGTH)
        assert len(step.of(Score)) == (forward.rows if branches else 0)
