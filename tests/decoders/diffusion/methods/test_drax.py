"""Drax: its sampler against exact posteriors, jump probabilities, given tokens, the choice of a candidate."""

import itertools
import math

import pytest
import torch

from decoders.chooser import Exhaustive, Random
from decoders.diffusion.methods.drax import jump_probability
from decoders.lane import Lane, Limits
from decoders.models.tabular_flow import TabularFlow
from decoders.trace.events import Cell, Commit, Forward, Note
from decoders.trace.scores import Measure, Rank, ScoreName

BITS = {(0, 0): 0.5, (1, 1): 0.5}  # two bits that are always equal
WORDS = {(0, 1, 2): 0.5, (1, 1, 0): 0.3, (2, 0, 1): 0.2}


def lane(joint, vocabulary, chooser=None, seed=0, begin=None, limit=8, eos=frozenset(), **parameters) -> Lane:
    table = TabularFlow(joint, vocabulary, eos=eos)
    parameters = {"temperature": 1.0} | parameters
    how = {"chooser": chooser, "begin": begin, "seed": seed, "limits": Limits(limit)}
    return Lane("drax", [0], {"target": table}, parameters, **how)


def events_of(trace, kind) -> list:
    return [event for step in trace.steps for event in step.of(kind)]


def texts(joint, vocabulary, **parameters) -> dict[tuple, float]:
    """The exact distribution of a lane's output."""
    return Exhaustive().distribution(
        lambda chooser: tuple(lane(joint, vocabulary, chooser, **parameters).run().output())
    )


def after_steps(steps: int) -> torch.Tensor:
    """Probabilities [4] of the states 00, 01, 10, 11 of the two bits after so many steps."""
    model, states = TabularFlow(BITS, 2), list(itertools.product(range(2), repeat=2))
    probs = torch.full((4,), 0.25, dtype=torch.float64)
    for step in range(steps):
        t = step / steps
        jump = 1.0 if step + 1 == steps else jump_probability(t, 1 / steps)
        moved = torch.zeros(4, dtype=torch.float64)
        for state, mass in zip(states, probs, strict=True):
            final = model.posterior(list(state), t)  # [2, 2]
            stays = torch.nn.functional.one_hot(torch.tensor(state), 2).double()
            one = jump * final + (1 - jump) * stays
            moved += mass * torch.outer(one[0], one[1]).flatten()
        probs = moved
    return probs


def test_one_step_is_an_independent_draw_per_position():
    want = {(a, b, c): 0.0 for a in range(3) for b in range(3) for c in range(3)}
    marginals = TabularFlow(WORDS, 3).posterior([0, 0, 0], 0.0)
    for text in want:
        want[text] = float(torch.stack([marginals[i, token] for i, token in enumerate(text)]).prod())
    got = texts(WORDS, 3, num_steps=1)
    assert {text: got.get(text, 0.0) for text in want} == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("steps", [1, 2])
def test_the_lane_is_the_chain_of_its_jumps(steps):
    want = dict(zip(itertools.product(range(2), repeat=2), after_steps(steps).tolist(), strict=True))
    assert texts(BITS, 2, num_steps=steps) == pytest.approx(want, abs=1e-12)


def test_the_error_of_two_equal_bits_halves_as_the_steps_double():
    differ = {steps: float(after_steps(steps)[1:3].sum()) for steps in (1, 2, 4, 8, 16, 32)}
    want = {1: 0.50, 2: 0.34, 4: 0.20, 8: 0.11, 16: 0.06, 32: 0.03}
    assert differ == pytest.approx(want, abs=0.006)


def test_jump_probabilities_are_the_integral_of_the_rate():
    assert [jump_probability(t, 0.25) for t in (0.0, 0.25, 0.5)] == pytest.approx(
        [0.2212, 0.2835, 0.3935], abs=5e-5
    )
    trace = lane(WORDS, 3, num_steps=4).run()
    scores = [e for e in events_of(trace, Measure) if e.name == ScoreName.JUMP]
    assert [s.parts["t"] for s in scores] == [0.0, 0.25, 0.5, 0.75]
    assert [s.total for s in scores] == pytest.approx([0.2212, 0.2835, 0.3935, 1.0], abs=5e-5)


def test_a_position_changes_again():
    for seed in range(20):
        cells = events_of(lane(WORDS, 3, seed=seed, num_steps=8).run(), Cell)
        changes = [sum(c.position == p and c.state == "changed" for c in cells) for p in (1, 2, 3)]
        if max(changes) > 1:
            return
    pytest.fail("No position changed twice in twenty runs.")


def test_given_tokens_never_change():
    trace = lane(WORDS, 3, begin={"tokens": [2], "forced": []}, num_steps=8, seed=3).run()
    assert trace.output()[0] == 2 and len(trace.output()) == 3
    assert {c.position for c in events_of(trace, Cell)} == {2, 3}


def test_only_given_tokens_leave_nothing_to_write():
    trace = lane({(0, 1): 1.0}, 2, begin={"tokens": [0, 1], "forced": []}).run()
    assert trace.ended == "All tokens of the canvas are given: 2 positions."


def test_each_step_is_one_forward_for_all_candidates():
    trace = lane(WORDS, 3, num_steps=5, num_candidates=3).run()
    forwards = events_of(trace, Forward)
    assert [(f.kind, f.tokens, f.rows) for f in forwards] == [("prefill", 1, 1)] + [("decode", 9, 3)] * 5


def test_the_medoid_of_the_candidates_is_the_text():
    trace = lane(WORDS, 3, num_steps=3, num_candidates=5, seed=1).run()
    scores = [e for e in events_of(trace, Rank) if e.name == ScoreName.WORD_ERROR_RATE]
    assert len(scores) == 5 and sorted(s.rank for s in scores) == [1, 2, 3, 4, 5]
    assert scores[0].total == min(s.total for s in scores)
    for score in scores:
        assert score.total == pytest.approx(sum(score.parts.values()) / 5)
    (commit,) = events_of(trace, Commit)
    assert commit.nodes[-1] == next(s.node for s in scores if s.rank == 1)
    assert any("is chosen" in note.text for note in events_of(trace, Note))


def test_a_lane_with_candidates_begins_with_the_lane_that_has_one():
    one, many = (lane(WORDS, 3, seed=4, num_candidates=n).run() for n in (1, 4))
    cells = [[(c.position, c.iteration, c.token, c.level) for c in events_of(t, Cell)] for t in (one, many)]
    first = [cell for cell in cells[1] if cell[3] == "1"]
    assert [cell[:3] for cell in cells[0]] == [cell[:3] for cell in first] and len(first) == 3 * 17


def test_the_log_probability_is_that_of_the_last_step():
    trace = lane({(0, 1): 0.75, (1, 1): 0.25}, 2, num_steps=1).run()
    (commit,) = events_of(trace, Commit)
    p = 0.75 if trace.output()[0] == 0 else 0.25
    assert [math.exp(x) for x in commit.logprobs] == pytest.approx([p, 1.0])


def test_what_stands_behind_the_end_is_no_text():
    trace = lane({(0, 2, 1): 1.0}, 3, eos=frozenset([2])).run()
    assert trace.output() == [0, 2]
    trimmed = [c for c in events_of(trace, Cell) if c.state == "trimmed"]
    assert [(c.position, c.token) for c in trimmed] == [(3, 1)]


def test_a_text_without_an_end_fills_its_canvas():
    trace = lane({(0, 1): 1.0}, 2).run()
    assert trace.output() == [0, 1] and trace.ended == "The canvas of 2 positions is full."


def test_temperature_zero_takes_the_likeliest():
    trace = lane(WORDS, 3, num_steps=1, temperature=0.0, chooser=Random(7)).run()
    marginals = TabularFlow(WORDS, 3).posterior([0, 0, 0], 0.0)
    assert trace.output() == marginals.argmax(-1).tolist()
