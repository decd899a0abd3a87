"""Filling canvases: against a plain loop, on tables whose joint distribution is known, and at the limits."""

from itertools import permutations, product

import pytest
import torch

from decoders.chooser import Draw, Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.tabular_denoiser import TabularDenoiser
from decoders.trace.events import Cell, Commit, Distribution, Forward
from decoders.trace.scores import Measure
from tests.helpers import tiny_models

PROMPT = [40, 41, 42]


def run(name, target, parameters=None, tokens=12, prompt=PROMPT, chooser=None):
    return Lane(name, list(prompt), {"target": target}, parameters, 0, Limits(tokens), chooser).run()


@pytest.fixture(scope="module")
def masked(tiny_model):
    return tiny_model("masked")


def permuted(n=4):
    """All orders of n tokens, equally likely: what a shuffle is."""
    return TabularDenoiser(dict.fromkeys(permutations(range(n)), 1.0), n)


def random_joint(seed, length=3, vocabulary=2):
    torch.manual_seed(seed)
    weights = (
        torch.distributions.Dirichlet(torch.full((vocabulary**length,), 0.3, dtype=torch.float64))
        .sample()
        .tolist()
    )
    return dict(zip(product(range(vocabulary), repeat=length), weights, strict=True))


def stepwise(model, prompt, length, block):
    """LLaDA's decoding with one token per forward, written again without a lane."""
    mask = model.engine.mask
    row = [*prompt, *[mask] * length]
    everywhere = torch.zeros(1, 1, len(row), len(row))
    for low in range(len(prompt), len(row), block):
        while masks := [p for p in range(low, min(low + block, len(row))) if row[p] == mask]:
            logits = model.model(torch.tensor([row]), attention_mask=everywhere).logits[0, masks, :mask]
            best, tokens = logits.softmax(-1).max(-1)
            row[masks[int(best.argmax())]] = int(tokens[best.argmax()])
        if any(token in model.eos for token in row[len(prompt) :]):
            break
    return tiny_models.cut(row[len(prompt) :], model)


@pytest.mark.parametrize("block", [4, 12])
@pytest.mark.parametrize("prompt", [[40, 41, 42], [7], [200, 3, 3]])
def test_one_token_per_forward_is_a_plain_loop(masked, prompt, block):
    found = run("masked_diffusion", masked, {"block_length": block}, prompt=prompt)
    want = stepwise(masked, prompt, 12, block)
    assert found.output() == want[: len(found.output())] and (
        len(found.output()) == len(want) or found.output()[-1] in masked.eos
    )


@pytest.mark.parametrize("order", ["random", "left to right", "margin", "entropy", "probability"])
def test_one_token_per_forward_draws_from_the_joint_in_any_order(order):
    """Any order that does not look at what was drawn: where the draws compete by their own probability, as in
    LLaDA's code, likely tokens win too often.
    """
    joint = random_joint(3)
    model = TabularDenoiser(joint, 2)

    def text(chooser):
        parameters = {"order": order, "temperature": 1.0}
        return tuple(run("masked_diffusion", model, parameters, 3, [0], chooser).output())

    law = Exhaustive().distribution(text)
    distance = sum(abs(law.get(answer, 0.0) - p) for answer, p in joint.items())
    assert distance > 0.1 if order == "probability" else distance < 1e-9


class OfWhatIsTaken(Exhaustive):
    """Walks the outcomes of the first `count` draws of each forward; those after them are thrown away."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def categorical(self, weights, tag):
        _, _, iteration = tag
        if sum(iteration == other for _, _, other in self.intervals) < self.count:
            return super().categorical(weights, tag)
        return Draw(int(weights.argmax()), None)


@pytest.mark.parametrize("n, per_forward, want", [(3, 1, 1.0), (3, 2, 2 / 3), (4, 2, 0.375), (4, 4, 0.09375)])
def test_more_tokens_per_forward_break_a_shuffle_as_the_theory_says(n, per_forward, want):
    """n!/prod m_t^k_t of the lists are right: what is drawn together does not know of each other."""
    # of lists of four the draws that are thrown away have too many outcomes to walk them all
    for walk in (OfWhatIsTaken(per_forward), *([Exhaustive()] if n == 3 else [])):
        assert walk.distribution(right(n, per_forward))[True] == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("n", [4, 5])
def test_one_token_per_forward_shuffles(n):
    """Its draws that are thrown away, 27648 histories of four tokens, are walked for three only, above."""
    assert OfWhatIsTaken(1).distribution(right(n, 1)) == {True: pytest.approx(1.0, abs=1e-12)}


def right(n, per_forward):
    """Whether a list of n tokens is a shuffle of them, as a function of the chooser that fills it from the
    left.
    """
    model = permuted(n)
    parameters = {"tokens_per_forward": per_forward, "temperature": 1.0, "order": "left to right"}
    return lambda chooser: len({*run("masked_diffusion", model, parameters, n, [0], chooser).output()}) == n


def test_a_threshold_on_independent_positions_takes_one_forward():
    model = TabularDenoiser({(0, 1, 0, 1): 1.0}, 2)
    found = run("masked_diffusion", model, {"policy": "threshold"}, 4, [0])
    assert found.output() == [0, 1, 0, 1] and found.costs.target_forwards == 1


def test_cells_tell_all_that_was_looked_at(masked):
    found = run("masked_diffusion", masked, {"tokens_per_forward": 3, "block_length": 6})
    first = found.steps[0].of(Cell)
    assert [c.state for c in first if c.iteration == 0] == ["mask"] * 12
    looked = [c for c in first if c.iteration == 1]
    assert [c.position for c in looked] == list(range(3, 9))
    assert sum(c.state == "committed" for c in looked) == 3
    assert all(0 < c.confidence <= 1 and c.entropy >= 0 for c in looked)


def test_text_grows_from_the_left_although_cells_do_not(masked):
    found = run("masked_diffusion", masked)
    for step in found.steps:
        assert len(step.of(Commit)) <= 1 and len(step.of(Forward)) == 1
    assert [n for s in found.steps for c in s.of(Commit) for n in c.nodes] == list(
        range(3, 3 + len(found.output()))
    )


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_a_cache_is_exact_in_the_first_forward_and_measured_after_it(masked, cache):
    parameters = {"cache": cache, "measure_drift": True, "block_length": 4, "tokens_per_forward": 2}
    found = run("masked_diffusion", masked, parameters, 8)
    drifts = [s.total for step in found.steps for s in step.of(Measure) if s.name == "drift"]
    assert found.costs.lens_forwards == len(drifts) > 0 and all(0 <= d <= 1 for d in drifts)
    whole = run("masked_diffusion", masked, {"tokens_per_forward": 4, "block_length": 4}, 4)
    once = run("masked_diffusion", masked, {"tokens_per_forward": 4, "block_length": 4, "cache": cache}, 4)
    assert once.output() == whole.output()


def test_kept_keys_and_values_of_what_has_not_changed_are_exact(masked):
    """Without a change to the canvas, the rest under the kept keys and values is the same forward."""
    scorer = masked.engine.attach(None)
    canvas = [*PROMPT, *[masked.engine.mask] * 9]
    for suffix in (False, True):
        kept = scorer.keep(canvas, 3, 8, suffix)
        assert torch.allclose(kept, scorer.denoise([canvas], 3, 8), atol=1e-5)
        assert scorer.denoise_part(canvas, 8).shape == kept.shape
    last = scorer.keep(canvas, 3, len(canvas), False)  # one layer's keys never depend on others' states
    assert torch.isfinite(last).all()


def test_a_suffix_stands_behind_the_canvas_and_is_read(tiny_model):
    masked = tiny_model("masked")
    plain = run("masked_diffusion", masked, tokens=6)
    filled = run("masked_diffusion", masked, {"suffix": " and the cat sat"}, 6)
    assert len(filled.output()) <= 6
    forwards = [step.of(Forward)[0].tokens for found in (plain, filled) for step in found.steps[:1]]
    assert forwards[1] > forwards[0]


def test_a_canvas_that_does_not_fit_is_refused_with_a_sentence(masked):
    found = run("masked_diffusion", masked, {"suffix": "x" * 300}, 200)
    assert "the model reads at most 256; shorten one of them." in found.ended and not found.output()


def test_a_model_that_predicts_early_is_shifted_and_takes_no_cache():
    model = tiny_models.make("masked")
    model.model.config.predicts_next = True
    scorer, canvas = model.engine.attach(None), [*PROMPT, *[model.engine.mask] * 4]
    whole = model.model(torch.tensor([canvas]), attention_mask=torch.zeros(1, 1, 7, 7)).logits[0]
    assert torch.allclose(scorer.denoise([canvas], 3, 7)[0], whole[2:6, :-1], atol=1e-5)
    with pytest.raises(ValueError, match="cached keys and values of the target"):
        run("masked_diffusion", model, {"cache": "prefix"})


def test_a_target_without_a_companion_is_refused(tiny_model):
    with pytest.raises(ValueError, match="writes with a masked-diffusion model, which 'tiny-llama' is not"):
        run("masked_diffusion", tiny_model("llama"))


@pytest.mark.parametrize("temperature, views", [(0.0, {"target"}), (0.7, {"target", "processed"})])
def test_a_processed_distribution_is_recorded_only_where_a_temperature_made_one(masked, temperature, views):
    found = run("masked_diffusion", masked, {"temperature": temperature})
    assert {d.view for step in found.steps for d in step.of(Distribution)} == views
