"""Distillation on tiny models: on-policy steps raise the overlap, and leave the text the target's."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.speculative.divergences import DIVERGENCES
from explorer.experiments.small_trainings import distilled_drafts as experiment
from tests.helpers import tiny_models


@pytest.fixture
def pair(monkeypatch):
    """A target and a draft, and what a few texts of the target make of the draft's distributions."""
    monkeypatch.setattr(experiment, "LENGTH", 12)
    monkeypatch.setattr(experiment, "STEPS", 30)
    monkeypatch.setattr(experiment, "RATE", 5e-3)
    target, draft = tiny_models.make(seed=1), tiny_models.make(seed=2)
    held = experiment.own_text({"target": target}, 16, 12, seed=9)
    p = experiment.logits_of(target.model, held)
    return target, draft, lambda one: experiment.agreement(p, experiment.logits_of(one.model, held))[0]


def test_agreement_by_hand():
    """sum min(p, q) of (.5, .3, .2) and (.4, .4, .2) is .9; their best tokens differ after one of two."""
    p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]).log()
    q = torch.tensor([[0.3, 0.5, 0.2], [0.2, 0.7, 0.1]]).log()
    overlap, same = experiment.agreement(p, q)
    assert overlap == pytest.approx((0.8 + 0.9) / 2, abs=1e-6) and same == 0.5
    one, two = torch.tensor([0.5, 0.3, 0.2]).log(), torch.tensor([0.4, 0.4, 0.2]).log()
    assert experiment.agreement(one[None], two[None])[0] == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("divergence", experiment.DIVERGED)
@pytest.mark.parametrize("own", [True, False])
def test_steps_raise_the_overlap_on_texts_that_were_not_learned_from(pair, divergence, own):
    target, draft, overlap = pair
    before = overlap(draft)
    learned = experiment.copied(draft)
    rows = experiment.own_text({"target": target}, 16, experiment.LENGTH)
    read = experiment.drawn_again(target, learned) if own else experiment.read_once(target, rows)
    experiment.distil(learned, read, divergence, 16)
    assert overlap(learned) > before + 0.02 and overlap(draft) == before


def test_the_texts_of_a_draft_are_drawn_from_what_it_has_become(pair):
    target, draft, _ = pair
    learned, pick = experiment.copied(draft), torch.tensor([0, 1])
    wanted = experiment.drawn_again(target, learned)
    rows, logits = wanted(pick)
    assert rows.shape == (2, experiment.LENGTH)
    torch.testing.assert_close(logits, target.model(input_ids=rows).logits)
    experiment.distil(learned, wanted, "forward KL", 8)
    assert not torch.equal(rows, wanted(pick)[0])


def test_what_a_draft_has_learned_changes_no_text(pair):
    target, draft, _ = pair
    learned = experiment.copied(draft)
    experiment.distil(learned, experiment.drawn_again(target, learned), "TVD", 8)
    models = {"target": target, "draft": learned}
    trace = Lane("speculative", [40, 41, 42], models, {"temperature": 0.0}, limits=Limits(20)).run()
    assert trace.output() == tiny_models.generate(target, [40, 41, 42], max_new_tokens=20)
    assert set(experiment.DIVERGED) <= DIVERGENCES.keys()
