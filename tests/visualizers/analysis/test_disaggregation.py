"""Attention and feed-forward layers apart: turns follow each other, and the slowest stage sets the period."""

import pytest

from visualizers.analysis.disaggregation import STAGES, idle, period, timeline


@pytest.mark.parametrize("seconds", [(2, 2, 2), (1, 1, 3), (3, 1, 2), (1, 4, 1)])
@pytest.mark.parametrize("micro_batches", [3, 4])
def test_the_period_is_that_of_the_simulated_timeline(seconds, micro_batches):
    """Between two ends of turns of one layer on the last stage, once the pipeline is full."""
    layers = 12
    turns = timeline(seconds, layers, micro_batches)
    ends = sorted(turn.end for turn in turns if turn.stage == len(STAGES) - 1)
    full = ends[2 * micro_batches : -2 * micro_batches]
    assert (full[-1] - full[0]) / (len(full) - 1) == pytest.approx(period(seconds))
    assert len(turns) == layers * micro_batches * len(STAGES)


def test_balanced_stages_have_no_bubble_once_filled():
    """50 ms per token over three equal stages are 16.6 ms each."""
    third = 50 / 3
    turns = timeline((third, third, third), 5, 3)
    assert [idle(turns, stage) for stage in range(3)] == pytest.approx([0, 0, 0])
    assert idle(timeline((1, 1, 3), 5, 3), 0) > 0 and idle(timeline((1, 1, 3), 5, 3), 2) == 0


def test_fewer_micro_batches_leave_stages_idle():
    assert idle(timeline((2, 2, 2), 5, 2), 1) > 0
    alone = timeline((1, 2, 3), 4, 1)
    assert alone[-1].end == 4 * (1 + 2 + 3)  # L (t_A + t_C + t_F)


def test_a_stage_serves_one_at_a_time_and_a_micro_batch_is_in_one_place():
    turns = timeline((2, 1, 3), 6, 4)
    for key in ("stage", "micro_batch"):
        for value in {getattr(turn, key) for turn in turns}:
            own = sorted((t.start, t.end) for t in turns if getattr(t, key) == value)
            assert all(one[1] <= other[0] for one, other in zip(own, own[1:], strict=False))
    with pytest.raises(ValueError, match="at least one layer"):
        timeline((1, 1, 1), 0, 3)
