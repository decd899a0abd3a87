"""Drafts that do not see what the target sees: lossless all the same, equal where there is nothing to see."""

import pytest
import torch
import transformers

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.testing import distance
from explorer.experiments import blind_drafts as experiment
from explorer.experiments import find_stored
from explorer.experiments.models.captioner import conditioned
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds


def encoder_decoder(vocabulary: int, end: int | None) -> transformers.T5ForConditionalGeneration:
    """A tiny random one, whose texts begin with token 0."""
    torch.manual_seed(4)
    config = transformers.T5Config(
        vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, n_positions=64,
        feed_forward_proj="gated-silu", dropout_rate=0.0, decoder_start_token_id=0, eos_token_id=end,
        pad_token_id=0,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape))
    return model.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def like():
    return tiny_models.make()


def test_lanes_write_what_generate_writes(like):
    """Greedy and drafted by a model that does not see the source; another source gives another text."""
    inner, texts = encoder_decoder(like.engine.vocabulary, 1), []
    for source in ([5, 6, 7], [9, 8]):
        target = conditioned(inner, source, like, "sees")
        blind = conditioned(tiny_models.make(seed=3).model, [], like, "blind")
        wanted = inner.generate(torch.tensor([source]), max_new_tokens=10, do_sample=False)[0, 1:].tolist()
        models = {"target": target, "draft": blind}
        for strategy in ("greedy", "speculative"):
            settings = {"temperature": 0.0} if strategy == "speculative" else {}
            assert Lane(strategy, [0], models, settings, limits=Limits(10)).run().output() == wanted
        texts.append(wanted)
    assert texts[0] != texts[1]


def test_the_law_is_the_targets_although_the_draft_lacks_the_condition(like):
    """Every outcome of chance, at temperature 1, three tokens out of three."""
    target = conditioned(encoder_decoder(3, None).double(), [2, 1], like, "sees")
    torch.manual_seed(1)
    shape = transformers.LlamaConfig(
        vocab_size=3, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        pad_token_id=None, bos_token_id=None, eos_token_id=None, initializer_range=1.0,
    )  # fmt: skip
    draft = conditioned(transformers.LlamaForCausalLM(shape).double().eval(), [], like, "blind")
    models = {"target": target, "draft": draft}
    exact = law_of_rounds(Exhaustive(), "sample", models, {"temperature": 1.0}, 3)
    settings = {"temperature": 1.0, "num_assistant_tokens": 2}
    drafted = law_of_rounds(Exhaustive(), "speculative", models, settings, 3)
    assert distance(exact, drafted) < 1e-12 and len(exact) == 27


def test_with_an_empty_condition_both_drafts_are_one(like, monkeypatch):
    monkeypatch.setattr(experiment, "STEPS", 3)
    monkeypatch.setattr(experiment, "BATCH", 2)
    inner = encoder_decoder(like.engine.vocabulary, 1)
    scenes = [([], [0, 40 + at, 50, 1]) for at in range(3)]

    class Unseen(torch.nn.Module):
        """The target, for which there is nothing to see but its own start."""

        def forward(self, input_ids, decoder_input_ids):
            return inner(input_ids=torch.tensor([[0]]), decoder_input_ids=decoder_input_ids)

    base = tiny_models.make(seed=3).model
    blind, seeing = (experiment.tuned(base, Unseen(), scenes, sees) for sees in (False, True))
    ids = torch.tensor([[0, 41, 50]])
    assert torch.equal(blind(ids).logits, seeing(ids).logits)
    assert not torch.equal(blind(ids).logits, base(ids).logits)
    shown = conditioned(seeing, [], like, "sees").model(ids).logits
    assert torch.equal(shown, seeing(ids).logits)


def test_words_of_the_scene_are_those_of_the_values(like):
    text = '{"name": "Tom", "age": 7}'
    marks = experiment.of_scene(like, like.cut(text))
    shown = "".join(c if m else "." for c, m in zip(text, marks, strict=True))  # a byte per token
    assert shown == "..........Tom..........7."


def test_the_stored_draft_that_sees_nothing_misses_words_of_the_scene():
    rows = find_stored("blind-drafts")["rows"]
    for draft, _, _, _, scene, others in rows:
        assert scene < others or draft == experiment.SEEING
    tokens = {(row[0], row[1]): row[2] for row in rows}
    for gamma in experiment.GAMMAS:
        assert 1 < tokens[experiment.BLIND, gamma] <= tokens[experiment.SEEING, gamma]
