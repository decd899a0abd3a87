"""Patterns of symbols: step counts, order, and that no symbol is said in knowledge of what comes later."""

from itertools import pairwise

import pytest
import torch

from explorer.experiments.small_trainings.codebook_patterns import SymbolModel, digits, mask, patterns

SIZES = [(6, 4), (24, 3), (33, 2), (1, 3), (40, 4)]


def test_the_step_counts_are_those_of_the_patterns():
    steps = {name: pattern.steps for name, pattern in patterns(6, 4).items()}
    assert steps.pop("stack-delay") == 11
    assert steps == {"parallel": 6, "delay": 9, "stack": 24, "flat": 24}
    assert {patterns(t, 3)["stack-delay"].steps - t for t in (12, 24, 48, 96)} == {4}  # T plus a constant


@pytest.mark.parametrize(("frames", "levels"), SIZES)
def test_every_symbol_is_made_once_its_lower_level_before_it(frames, levels):
    for name, pattern in patterns(frames, levels).items():
        schedule = pattern.schedule
        assert len(schedule) == frames and all(len(steps) == levels for steps in schedule)
        for k in range(levels):  # at most one symbol of a level a step
            assert len({steps[k] for steps in schedule}) == frames
        for steps in schedule:
            assert all(a < b for a, b in pairwise(steps)) or name == "parallel" and len({*steps}) == 1


@pytest.mark.parametrize(("frames", "levels"), SIZES)
def test_neighbours_are_never_under_way_at_a_time_in_stack_delay(frames, levels):
    pattern = patterns(frames, levels)["stack-delay"]
    schedule = pattern.schedule
    assert all(not set(a) & set(b) for a, b in pairwise(schedule))
    inside = [schedule[t][0] > max(schedule[t - 1][-1], schedule[t + 1][-1]) for t in range(1, frames - 1, 2)]
    assert all(inside)  # a frame of odd number sees both neighbours finished
    busy = [sum(step in steps for steps in schedule) for step in range(pattern.steps)]
    assert max(busy) <= levels


@pytest.mark.parametrize("name", ["parallel", "delay", "stack-delay", "stack", "flat"])
def test_a_symbol_is_said_from_what_was_made_before_alone(name):
    """Another symbol in one place changes what is said of exactly the symbols that may know of it."""
    torch.manual_seed(0)
    frames, levels, base = 7, 3, 4
    pattern = patterns(frames, levels)[name]
    model = SymbolModel(pattern, base, width=16, layers=2).eval()
    symbols = torch.randint(base, (1, frames, levels))
    step = torch.tensor(pattern.schedule)
    with torch.inference_mode():
        said = model(symbols)
        for t, k in ((2, 0), (2, 2), (3, 1), (0, 2)):
            other = symbols.clone()
            other[0, t, k] = (other[0, t, k] + 1) % base
            moved = ((model(other) - said).abs().amax(-1) > 1e-6)[0]
            assert not moved[step <= step[t, k]].any()
            last = step[t, -1]  # a stacked frame shows itself to others when it is finished
            knows = step > (last if pattern.stacked else step[t, k])
            knows[t] = step[t] > step[t, k]
            assert torch.equal(moved, knows)


def test_a_stacked_pattern_keeps_one_state_a_finished_frame():
    frames, levels = 5, 3
    for name, kept in (("flat", levels * (frames - 1)), ("stack", frames - 1)):
        last = mask(patterns(frames, levels)[name])[-levels]  # asks for the first level of the last frame
        assert int(last[: frames * levels].sum()) == kept


def test_tokens_come_back_from_their_digits():
    tokens = torch.tensor([[0, 5, 4095], [16, 256, 17]])
    found = digits(tokens, 16, 3)
    assert found.shape == (2, 3, 3)
    assert found[0, 2].tolist() == [15, 15, 15] and found[1, 2].tolist() == [0, 1, 1]
    assert torch.equal((found * torch.tensor([256, 16, 1])).sum(-1), tokens)
    assert torch.equal((digits(tokens, 64, 2) * torch.tensor([64, 1])).sum(-1), tokens)
    with pytest.raises(ValueError, match="3 symbols of 8 do not hold token 4095; use more levels."):
        digits(tokens, 8, 3)
