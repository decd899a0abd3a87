"""DEER: exact laws on tables, accepted lengths, reused tails, and drafts of the shipped drafter."""

import math
from itertools import product

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.logits.distributions import residual
from decoders.models.table_model import TableModel, exact_distribution
from decoders.models.tabular_denoiser import TabularDenoiser
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Note, Propose, Verdict, acceptance
from tests.helpers.losslessness import law_of_rounds

V, LENGTH = 3, 4
TAILS = [False, True]


def drafter(seed: int, length: int = LENGTH) -> TabularDenoiser:
    """Answers of `length` tokens with random probabilities, which have nothing to do with the target."""
    torch.manual_seed(seed)
    answers = list(product(range(V), repeat=length))
    weights = (2 * torch.randn(len(answers), dtype=torch.float64)).softmax(0).tolist()
    return TabularDenoiser(dict(zip(answers, weights, strict=True)), V)


def target(seed: int, eos: frozenset[int] = frozenset(), masked: TabularDenoiser | None = None) -> TableModel:
    model = TableModel(random_table(seed, sharpness=2), V, eos)
    model.companions["diffusion"] = masked or drafter(seed + 100)
    return model


@pytest.mark.parametrize("reuse_tail", TAILS)
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
def test_the_text_has_the_target_s_distribution(reuse_tail, eos, shape):
    """Every outcome of every draw is walked, over three and more rounds of drafts of two."""
    model, settings = target(1, eos), {"num_assistant_tokens": 2, "reuse_tail": reuse_tail, **shape}
    law = law_of_rounds(Exhaustive(), "deer", {"target": model}, settings, 3)
    assert distance(law, exact_distribution(model, (0,), 3, shape_of(shape))) < 1e-12


def test_a_long_draft_with_a_reused_tail_has_it_too():
    settings = {"num_assistant_tokens": 3, "reuse_tail": True, "temperature": 1.0}
    model = target(5)
    law = law_of_rounds(Exhaustive(), "deer", {"target": model}, settings, LENGTH)
    assert distance(law, exact_distribution(model, (0,), LENGTH)) < 1e-12


def test_the_residual_by_hand():
    """p = (.5, .3, .2), q = (.2, .6, .2): symbol 2 passes with one half; what is left is symbol 1 alone."""
    p, q = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]], dtype=torch.float64)
    assert acceptance(0.3, 0.6) == pytest.approx(0.5)
    assert residual(p, q).tolist() == pytest.approx([1.0, 0.0, 0.0])
    one = TabularDenoiser({(i,): float(w) for i, w in enumerate(q)}, 3)
    model = TableModel(lambda text: p.tolist(), 3)
    model.companions["diffusion"] = one
    settings = {"num_assistant_tokens": 1, "temperature": 1.0}
    law = law_of_rounds(Exhaustive(), "deer", {"target": model}, settings, 2, rounds=1)
    first = [sum(mass for text, mass in law.items() if text[0] == i) for i in range(3)]
    assert first == pytest.approx(p.tolist(), abs=1e-12)


def test_the_expected_accepted_length_is_a_sum_of_products():
    """Tables without context: sum over i of the product of sum_x min(p_j, q_j) for j up to i, exactly."""
    torch.manual_seed(0)
    p, q = (torch.randn(3, V, dtype=torch.float64).softmax(-1) for _ in range(2))
    joint = {
        answer: float(torch.stack([q[i, x] for i, x in enumerate(answer)]).prod())
        for answer in product(range(V), repeat=3)
    }
    model = TableModel(lambda text: p[min(len(text) - 1, 2)].tolist(), V)
    model.companions["diffusion"] = TabularDenoiser(joint, V)

    def accepted(chooser) -> int:
        settings = {"num_assistant_tokens": 3, "temperature": 1.0}
        lane = Lane("deer", [0], {"target": model}, settings, limits=Limits(4), chooser=chooser)
        step = lane.advance()
        lane.close()
        return sum(v.status == "accepted" for v in step.of(Verdict))

    law = Exhaustive().distribution(accepted)
    overlaps = torch.minimum(p, q).sum(-1)
    assert sum(n * mass for n, mass in law.items()) == pytest.approx(
        float(overlaps.cumprod(0).sum()), abs=1e-9
    )


def run(model: TableModel, tokens: int = 12, seed: int = 0, **settings):
    return Lane("deer", [0], {"target": model}, settings, seed, Limits(tokens)).run()


@pytest.mark.parametrize("reuse_tail", TAILS)
def test_at_temperature_0_the_text_is_greedys(reuse_tail):
    for seed in range(5):
        model = target(seed)
        found = run(model, num_assistant_tokens=3, reuse_tail=reuse_tail)
        greedy = Lane("greedy", [0], {"target": model}, limits=Limits(12)).run()
        assert found.output() == greedy.output() and found.badge == "lossless: equal to greedy"


def test_a_reused_tail_takes_no_forward_of_the_drafter_and_keeps_its_tokens():
    model = target(3)
    found = run(model, 30, temperature=1.0, num_assistant_tokens=4, reuse_tail=True)
    unread: list[int] = []
    reused = 0
    for step in found.steps:
        drafted = [e.token for e in step.of(Propose) if e.source == "draft"]
        forwards = [f for f in step.of(Forward) if f.model == "draft"]
        assert len(forwards) == (0 if unread or not drafted else 1)
        if unread:
            assert drafted == unread
            reused += 1
        statuses = [
            v.status for v in step.of(Verdict) if v.status in ("accepted", "rejected", "never reached")
        ]
        unread = drafted[statuses.index("rejected") + 1 :] if "rejected" in statuses else []
    assert reused > 2 and found.badge == "exact in distribution"


def test_without_a_masked_model_the_target_writes_alone():
    model = TableModel(random_table(0), V)
    found = run(model)
    assert "the target writes alone" in found.steps[0].of(Note)[0].text
    assert found.costs.proposed == 0 and len(found.output()) == 12


def test_each_guess_is_drawn_from_its_own_marginal():
    """The probabilities that are recorded are those of the masked model, none of them given another guess."""
    model = target(2)
    found = run(model, 5, temperature=1.0, num_assistant_tokens=4)
    marginals = model.companions["diffusion"].marginals([V] * LENGTH)
    drafted = [e for e in found.steps[0].of(Propose) if e.source == "draft"]
    assert len(drafted) == 4
    for place, event in enumerate(drafted):
        assert math.exp(event.logprob) == pytest.approx(float(marginals[place, event.token]), abs=1e-9)
