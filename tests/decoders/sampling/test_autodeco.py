"""AutoDeco: plain sampling where its heads say so, the dossier's soft top-p with its gradients, the law of
what it draws, and heads that learn where chance is and where it is not.
"""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import AutoDeco, Target
from decoders.heads.scorers.autodeco import smooth_top_p, statistics, taught, temperature_loss, top_p_loss
from decoders.lane import Lane, Limits
from decoders.logits.distributions import probabilities, processors
from decoders.models.loaded_model import LoadedModel
from decoders.sampling.autodeco import Settings, shaped
from decoders.testing import distance, random_table
from decoders.trace.events import Distribution, Note
from decoders.trace.scores import Measure
from tests.helpers import tiny_models
from tests.helpers.stateful_tables import StatedTable

ROW, P = torch.tensor([[0.5, 0.3, 0.2]]), 0.6


class Fixed:
    """Heads that say (T, P) of a text."""

    def __init__(self, said):
        self.said = said

    def scores(self, text, row):
        return self.said(text)


def with_heads(model: LoadedModel, heads) -> LoadedModel:
    """A model of its own, with the same weights, that has these heads."""
    made = LoadedModel(model.name, model.model, model.tokenizer)
    made.heads["autodeco"] = heads
    return made


def forced(target: Target, t: float, p: float) -> AutoDeco:
    """Heads whose networks say the logits t and p whatever they read."""
    heads = AutoDeco(target, width=4).eval()
    for network, said in ((heads.temperature, t), (heads.top_p, p)):
        torch.nn.init.zeros_(network[-1].weight)
        torch.nn.init.constant_(network[-1].bias, said)
    return heads


def test_heads_that_say_1_and_1_are_plain_sampling(tiny_model):
    """The dossier's first test: T = 2 sigmoid(0) = 1, P = sigmoid(100) = 1."""
    plain = tiny_model("llama")
    heads = forced(Target.of(plain.model), 0.0, 100.0)
    model, limits = with_heads(plain, heads), Limits(20)
    for seed in range(4):
        found = Lane("autodeco", [40, 41], {"target": model}, {}, seed, limits).run()
        want = Lane("sample", [40, 41], {"target": plain}, {}, seed, limits).run()
        assert found.output() == want.output()
        told = [s.total for step in found.steps for s in step.of(Measure) if s.scale is not None]
        assert told == [1.0] * 2 * len(found.output())


def test_the_soft_top_p_lets_the_token_fade_that_crosses_it_and_the_hard_one_keeps_it():
    """The dossier's row: the soft mask leaves one token, the hard nucleus two."""
    left = smooth_top_p(ROW, torch.tensor([P]))
    assert left[0].tolist() == pytest.approx([0.9985, 0.0015, 0.0], abs=1e-4)
    shuffled = smooth_top_p(ROW[:, [2, 0, 1]], torch.tensor([P]))
    assert torch.allclose(shuffled, left[:, [2, 0, 1]])
    model = StatedTable(lambda past: ROW[0].tolist(), 3)
    lane = Lane("autodeco", [0], {"target": model}, {"predict": "neither"})
    hard = probabilities(shaped(lane, ROW.log(), Settings(1.0, P)))
    assert hard[0].tolist() == pytest.approx([0.625, 0.375, 0.0])


@pytest.mark.parametrize(("token", "gradient"), [(0, 0.045), (1, -29.96)])
def test_p_rises_for_a_token_beyond_it_and_falls_a_little_for_one_inside(token, gradient):
    p = torch.tensor([P], requires_grad=True)
    top_p_loss(ROW.log(), torch.ones(1), p, torch.tensor([token])).backward()
    assert p.grad.item() == pytest.approx(gradient, abs=0.01)


def test_what_is_read_and_what_counts():
    numbers = statistics(torch.tensor([[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]]))[0]
    assert numbers.tolist() == pytest.approx([0.4, 1.6094, 6 * (0.24 / 6 - 1 / 36), 0.9], abs=1e-4)
    logits, tokens = ROW.log().repeat(3, 1), torch.tensor([0, 1, 2])
    kept = taught(logits, tokens, at_random=False)
    assert kept.tolist() == pytest.approx([0.4, 1.0, 1.0])
    torch.manual_seed(0)
    many = taught(ROW.log().repeat(4000, 1), torch.zeros(4000, dtype=torch.long), at_random=True)
    assert set(many.tolist()) == {0.0, 1.0} and many.mean().item() == pytest.approx(0.4, abs=0.03)
    lost = temperature_loss(logits, torch.full((3,), 2.0), tokens, kept)
    cooled = ROW[0].sqrt() / ROW[0].sqrt().sum()
    want = -(cooled.log() * ROW[0] * kept).sum() / (ROW[0] * kept).sum()
    assert lost.item() == pytest.approx(want.item(), abs=1e-5)


def test_what_it_draws_is_what_transformers_makes_of_the_row_with_these_numbers():
    """The law of texts of two tokens, at other settings after each beginning."""
    said = {(0,): (0.5, 0.9), (0, 0): (1.5, 0.4), (0, 1): (2.0, 1.0), (0, 2): (0.3, 0.7)}
    model = StatedTable(random_table(1, 3, 1.5), 3)
    model.heads["autodeco"] = Fixed(said.__getitem__)

    def run(chooser):
        return tuple(Lane("autodeco", [0], {"target": model}, {}, 0, Limits(2), chooser).run().output())

    def law(text: tuple[int, ...]) -> list[float]:
        t, p = said[text]
        row = torch.tensor([model.table(text)]).log()
        stack = processors({"temperature": t, "top_p": p}, 3)
        return probabilities(stack(row, [[]]))[0].tolist()

    first = law((0,))
    want = {(a, b): first[a] * second for a in range(3) for b, second in enumerate(law((0, a)))}
    assert distance(Exhaustive().distribution(run), want) < 1e-9


def test_what_is_not_predicted_is_as_typed():
    model = StatedTable(random_table(2, 4, 1.5), 4)
    model.heads["autodeco"] = Fixed(lambda text: (0.5, 0.75))
    typed = {"temperature": 1.25, "top_p": 0.5}
    for predict, want in {
        "both": (0.5, 0.75),
        "temperature": (0.5, 0.5),
        "top_p": (1.25, 0.75),
        "neither": (1.25, 0.5),
    }.items():
        trace = Lane("autodeco", [0], {"target": model}, {"predict": predict, **typed}, 0, Limits(1)).run()
        assert tuple(s.total for s in trace.steps[0].of(Measure) if s.scale is not None) == want
        levels = [d.level for d in trace.steps[0].of(Distribution) if d.view == "processed"]
        assert levels == [f"temperature {want[0]:.2f}", f"top_p {want[1]:.2f}"]


def test_without_heads_it_says_so_and_samples_as_typed(tiny_model):
    plain, limits = tiny_model("llama"), Limits(8)
    shape = {"temperature": 0.7, "top_p": 0.8}
    found = Lane("autodeco", [40, 41], {"target": plain}, shape, 3, limits).run()
    want = Lane("sample", [40, 41], {"target": plain}, shape, 3, limits).run()
    assert found.output() == want.output()
    (note,) = [note.text for step in found.steps for note in step.of(Note)]
    assert note.startswith("No temperature and top-p heads come with the project for the target 'tiny-llama'")
    greedy = Lane("autodeco", [40, 41], {"target": plain}, {"temperature": 0.0}, 3, limits).run()
    assert greedy.output() == tiny_models.generate(plain, [40, 41], max_new_tokens=8)


def synthetic(count: int, seed: int) -> tuple[Target, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A target whose states tell two kinds of places apart: where token 0 always comes, though the row gives
    it no more than six tenths, and where any of four tokens comes.
    """
    chance = torch.Generator().manual_seed(seed)
    sure = torch.tensor([0.6, 0.1, 0.1, 0.1, 0.025, 0.025, 0.025, 0.025]).log()
    open_ = torch.tensor([0.27, 0.25, 0.23, 0.21, 0.01, 0.01, 0.01, 0.01]).log()
    head = torch.zeros(8, 6)
    head[:, 0], head[:, 1] = sure, open_
    target = Target(torch.zeros(8, 6), head, torch.ones(6), 1e-5, 2, 2, 16, 1e4)
    kind = torch.arange(count) % 2
    hidden = 0.1 * torch.randn(count, 6, generator=chance)
    hidden[:, :2] = torch.nn.functional.one_hot(kind, 2).float()
    tokens = torch.where(kind == 0, 0, torch.randint(4, (count,), generator=chance))
    return target, hidden, tokens, kind


def test_heads_learn_where_chance_is_and_beat_the_best_single_temperature():
    target, hidden, tokens, _ = synthetic(512, 0)
    torch.manual_seed(0)
    heads = AutoDeco(target, width=32)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        heads.loss(hidden, tokens).backward()
        optimizer.step()
    heads.eval()
    _, hidden, tokens, kind = synthetic(256, 1)
    logits = target.logits(hidden)
    with torch.no_grad():
        t, p = heads(hidden, logits)
    assert t[kind == 0].max() < t[kind == 1].min() and p[kind == 1].min() > 0.75
    nucleus = processors({"temperature": t[1].item(), "top_p": p[1].item()}, 8)
    assert set(range(4)) <= set(nucleus(logits[1:2], [[]])[0].isfinite().nonzero()[:, 0].tolist())
    kept = taught(logits, tokens, at_random=False)
    single = [temperature_loss(logits, torch.full_like(t, 0.1 * at), tokens, kept) for at in range(1, 20)]
    assert temperature_loss(logits, t, tokens, kept) < min(single)
