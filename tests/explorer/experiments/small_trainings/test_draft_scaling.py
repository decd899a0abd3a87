"""Scaling laws of drafts: planted lines are found again, batches by hand, and drafters of any depth."""

import pytest
import torch

from decoders.heads import Eagle, Target, take_taps
from explorer.experiments import find_stored
from explorer.experiments.models.stacked_drafter import StackedDrafter
from explorer.experiments.small_trainings.draft_scaling import best_budget, line


def test_the_fit_finds_planted_coefficients():
    a, b, r2 = line([1e5, 1e6], [2.0, 2.3])
    assert (a, b) == pytest.approx((0.3, 0.5)) and a * 7 + b == pytest.approx(2.6) and r2 == pytest.approx(1)
    sizes = [3e4, 1e5, 3e5, 1e6]
    planted = [0.7 * torch.tensor(x).log10().item() - 1.2 for x in sizes]
    assert line(sizes, planted)[:2] == pytest.approx((0.7, -1.2), abs=1e-5)
    assert line([1.0, 10.0, 100.0], [0.0, 2.0, 1.0])[2] == pytest.approx(0.25)


@pytest.mark.parametrize(("batch", "budget", "speed"), [(1, 64, 3.2), (4, 16, 11.2), (16, 4, 32.0)])
def test_the_best_number_of_candidates_by_hand(batch, budget, speed):
    """t(N) = max(1, N / 64), and trees of 4, 16 and 64 nodes that bring 2, 2.8 and 3.2 tokens."""
    tokens = {4: 2.0, 16: 2.8, 64: 3.2}
    assert best_budget(batch, tokens, lambda n: max(1.0, n / 64)) == (budget, pytest.approx(speed))


def test_it_never_grows_with_the_batch():
    tokens = {m: 1 + m**0.4 for m in (1, 4, 16, 64)}
    best = [best_budget(b, tokens, lambda n: max(1.0, n / 50))[0] for b in (1, 2, 4, 8, 16, 32, 64)]
    assert best == sorted(best, reverse=True) and best[0] > best[-1]


@pytest.fixture(scope="module")
def shared(tiny_model):
    return Target.of(tiny_model("llama").model)


def test_one_layer_is_eagle(shared):
    torch.manual_seed(2)
    eagle, stacked = Eagle(shared), StackedDrafter(shared, 1, shared.intermediate)
    names = {
        "join": "join",
        "attention": "layers.0.attention",
        "norm": "layers.0.norm",
        "feed": "layers.0.feed",
    }
    weights = {names[k.split(".")[0]] + k[len(k.split(".")[0]) :]: v for k, v in eagle.state_dict().items()}
    stacked.load_state_dict(weights)
    taps = take_taps(shared.model, torch.randint(40, 90, (2, 9), generator=torch.Generator().manual_seed(1)))
    for one, other in zip(eagle.along(taps, 3), stacked.along(taps, 3), strict=True):
        torch.testing.assert_close(one, other)


def test_several_layers_draft_what_they_say_along_the_text(shared):
    """What is measured along known texts is what a lane would draft, depth by depth."""
    torch.manual_seed(3)
    drafter = StackedDrafter(shared, 3, 16).eval()
    tokens = torch.tensor([[40, 41, 50, 60, 42, 43, 55, 70]])
    taps, memory = take_taps(shared.model, tokens), drafter.memory()
    along = drafter.along(taps, 3)
    with torch.no_grad():
        first = drafter.begin(memory, taps.hidden[0, :4], tokens[0, 1:5])
        second = drafter.expand(memory, [0], tokens[0, 5:6])[0]
        third = drafter.expand(memory, [1], tokens[0, 6:7])[0]
    for depth, logits in enumerate((first, second, third)):
        torch.testing.assert_close(logits, along[depth][0, 3], atol=1e-4, rtol=1e-4)


def test_a_step_of_training_lowers_the_loss(shared):
    drafter = StackedDrafter(shared, 2, 16)
    taps = take_taps(shared.model, torch.randint(40, 90, (2, 16), generator=torch.Generator().manual_seed(1)))
    optimizer, losses = torch.optim.AdamW(drafter.parameters(), 5e-3), []
    for _ in range(15):
        losses.append(drafter.loss(taps))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0]


def test_the_stored_drafts_earn_more_the_more_they_have_read():
    rows = find_stored("draft-scaling")["rows"]
    for layers in {row[0] for row in rows}:
        counts = [row[3] for row in rows if row[0] == layers]
        assert counts[-1] > counts[0] and line([row[2] for row in rows if row[0] == layers], counts)[0] > 0
