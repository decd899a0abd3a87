"""SpecDec: Spec-Verification by hand and at its limits, blocks of a masked model, and its forwards."""

import json

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.tree import Tree
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.speculative.interfaces import FIXED, Draft, VerifierInput
from decoders.speculative.methods.specdec import nearly_best
from decoders.testing import distance
from decoders.trace.events import Forward, Note, Propose, Verdict
from tests.helpers import tiny_models
from tests.helpers.deep_models import PROMPT, deep, run
from tests.helpers.losslessness import law_of_rounds


def with_masks(seed: int = 9, **how):
    """A target, and a masked model of random weights that has one token more."""
    model = deep(**how)
    other = deep(layers=2, vocabulary=model.engine.vocabulary + 1, seed=seed).model
    other.config.mask_token_id = model.engine.vocabulary
    model._companions["diffusion"] = LoadedModel("masks", other, model.tokenizer, tokens_of=model)
    return model


@pytest.fixture(scope="module")
def model():
    return with_masks()


def inputs(rows: list[list[float]], drafted: list[int]) -> VerifierInput:
    """A chain of drafted tokens after the root 0 and the target's log-probabilities of every place."""
    draft, soft = Draft(0), [torch.tensor(row, dtype=torch.float64).exp() for row in rows]
    for node in range(1, len(drafted) + 1):
        draft.nodes.append(node)
        draft.children[node - 1] = [node]
    laws = dict(enumerate(soft))
    hard = {node: (p == p.max()).double() for node, p in laws.items()}
    return VerifierInput(draft, [0, *drafted], hard, Exhaustive(), 0, laws)


def test_the_dossier_s_example():
    """Log-probs A -0.2, B -2.0, C -4.0, beta 3, tau 2: A and B pass (gap 1.8), C does not (3.8)."""
    row = [-0.2, -2.0, -4.0]
    for token, passes in ((0, True), (1, True), (2, False)):
        verification = nearly_best(3, 2.0, 0.0).verify(inputs([row, row], [token]))
        assert [t.accepted for t in verification.tests] == [passes] and verification.token == 0
        assert verification.path == ([1] if passes else [])
    equal = nearly_best(3, 1.8, 0.0).verify(inputs([[-0.25, -2.05, -4.0]] * 2, [1]))
    assert equal.path == [] or equal.tests[0].watched[1] <= 1.8  # up to the last digit


def test_a_gap_of_just_tau_passes():
    row = [0.5, 0.25, 0.25]
    verification = nearly_best(2, float(torch.tensor(2.0, dtype=torch.float64).log()), 0.0)
    logs = torch.tensor(row, dtype=torch.float64).log().tolist()
    assert verification.verify(inputs([logs, logs], [1])).path == [1]


def test_more_passes_where_beta_or_tau_is_larger():
    torch.manual_seed(0)
    for _ in range(20):
        rows = torch.randn(6, 9, dtype=torch.float64).log_softmax(-1).tolist()
        asked = inputs(rows, torch.randint(9, (5,)).tolist())
        lengths = {
            (beta, tau): len(nearly_best(beta, tau, 0.0).verify(asked).path)
            for beta in (2, 4, 9)
            for tau in (0.5, 1.0, 3.0)
        }
        for (beta, tau), length in lengths.items():
            assert all(length <= lengths[b, t] for b, t in lengths if b >= beta and t >= tau)


@pytest.mark.parametrize("limit", [{"beta": 1}, {"tau": 0.0}])
def test_at_its_limits_the_text_is_greedys(limit, model):
    found = run("specdec", model, limit)
    assert found.output() == run("greedy", model).output() and found.badge == "lossless: equal to greedy"
    assert found.costs.proposed > 0 and model.engine.cache.used == 0


def test_a_lenient_rule_keeps_what_is_drafted():
    found = run("specdec", with_masks(vocabulary=60), {"beta": 64, "tau": 100.0, "num_assistant_tokens": 3})
    assert found.badge == "relaxed" and found.costs.accepted == found.costs.proposed > 10
    assert any(n.text.startswith("Lossy: ") for step in found.steps for n in step.of(Note))


def test_a_token_that_top_k_removed_is_rejected_with_numbers_that_can_be_saved(model):
    found = run("specdec", model, {"temperature": 0.8, "top_k": 2, "num_assistant_tokens": 3})
    json.dumps(found.to_json(), allow_nan=False)
    assert any(v.p == 0.0 and v.status == "rejected" for step in found.steps for v in step.of(Verdict))


def test_a_block_is_one_forward_and_none_of_its_guesses_sees_another(model):
    """By hand: the masked model on the text with as many masks, in both directions."""
    found = run("specdec", model, {"tau": 0.0, "num_assistant_tokens": 4})
    nodes = found.nodes()
    for step in found.steps:
        guesses = [p for p in step.of(Propose) if p.source == "draft"]
        drafts = [f for f in step.of(Forward) if f.model == "draft"]
        assert len(drafts) == bool(guesses)
        if not guesses:
            continue
        text, node = [], guesses[0].parent
        while node >= len(PROMPT):
            node, token = nodes[node]
            text.append(token)
        masked = model.companion("diffusion")
        row = [*PROMPT, *text[::-1], *[masked.engine.mask] * len(guesses)]
        assert drafts[0].tokens == len(row)
        everywhere = torch.zeros(1, 1, len(row), len(row), dtype=torch.float64)
        said = masked.model(torch.tensor([row]), attention_mask=everywhere).logits[0, -len(guesses) :]
        assert [g.token for g in guesses] == said[:, : masked.engine.mask].argmax(-1).tolist()


def test_one_mask_still_brings_up_to_two_tokens():
    found = run(
        "specdec", with_masks(vocabulary=60), {"beta": 64, "tau": 100.0, "num_assistant_tokens": 1}, tokens=20
    )
    assert found.costs.target_forwards <= 11


def test_drawn_text_at_the_limit_has_the_target_s_law():
    model = with_masks(vocabulary=3)
    given, shape = {"num_assistant_tokens": 2, "tau": 0.0, "temperature": 1.0}, {"temperature": 1.0}
    law = law_of_rounds(Exhaustive(), "specdec", {"target": model}, given, length=3)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": model}, shape, length=3)
    assert distance(law, plain) < 1e-9


def test_the_law_that_strays_is_told(model):
    rule = nearly_best(2, 1.0, 0.0)
    row = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log().tolist()
    assert rule.distribution(inputs([row, row], [1]), 0).tolist() == [0.0, 1.0, 0.0]
    assert rule.distribution(inputs([row, row], [2]), 0).tolist() == [1.0, 0.0, 0.0]
    assert rule.relaxed_for == {FIXED}


def test_without_a_masked_model_the_target_writes_alone():
    model = tiny_models.make("llama")
    assert model.companion("diffusion") is None
    found = run("specdec", deep())
    assert (
        found.steps[0]
        .of(Note)[0]
        .text.startswith("No masked-diffusion model with the tokens of 'deep-llama'")
    )
    assert found.output() == run("greedy", deep()).output() and found.costs.proposed == 0


def test_the_shipped_one_is_found_and_leaves_the_mask_out():
    target = load("llama-tiny")
    masked = target.companion("diffusion")
    assert masked.name == "llama-tiny-diffusion" and masked.engine.mask == target.engine.vocabulary
    scorer = masked.engine.attach(Tree([5]))
    assert scorer.guess(target.encode("Once upon a"), 2).shape == (2, target.engine.vocabulary)
    assert scorer.guess([5] * 600, 3).shape == (3, target.engine.vocabulary)
