"""The logit lens: its last row is the model's own, its numbers are those of their definitions."""

from pathlib import Path

import pytest
import torch

from decoders import lenses as lens_files
from decoders.lenses.by_depth import decision_depths
from decoders.lenses.registry import NAMES, lenses, look
from decoders.speculative.divergences import forward_kl, jsd, reverse_kl, tvd
from decoders.trace.events import Distribution
from decoders.trace.scores import Score
from tests.helpers.served_here import ServedHere


def test_every_file_that_declares_a_lens_is_named():
    files = Path(lens_files.__file__).parent.glob("*.py")
    assert (
        {file.stem for file in files if "\n@lens(" in file.read_text("utf-8")} == set(NAMES) == set(lenses())
    )


def test_divergences_are_what_their_names_say():
    """A well-known library gives 0.4394 for the Jensen-Shannon divergence of the first pair (the mean of both
    KLs), and 0.25 for the total variation of the second (the largest difference of one token).
    """
    p, q = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.9, 0.1]).log()
    assert forward_kl(p, q).item() == pytest.approx(0.51083, abs=5e-6)
    assert reverse_kl(p, q).item() == pytest.approx(0.36806, abs=5e-6)
    assert jsd(p, q).item() == pytest.approx(0.10175, abs=5e-6)
    assert tvd(p, q).item() == pytest.approx(0.4)
    assert tvd(torch.tensor([0.5, 0.5, 0.0, 0.0]).log(), torch.zeros(4)).item() == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_the_last_row_is_the_models_own(kind, tiny_model, prompt):
    model = tiny_model(kind)
    frame = look("logit", model, prompt, {"positions": 64})
    own = model.model(torch.tensor([prompt])).logits[0].log_softmax(-1)
    last = frame.of(Distribution, level="layer 2")
    assert [one.node for one in last] == list(range(len(prompt)))
    for one in last:
        for token, logprob in one.top:
            assert logprob == pytest.approx(own[one.node, token].item(), abs=1e-5)
    far = frame.of(Score, name="KL to final")
    assert all(one.total == pytest.approx(0, abs=1e-6) for one in far if one.level == "layer 2")
    assert max(one.total for one in far) > 0.1 and len(far) == 3 * len(prompt)


def test_middle_rows_are_norm_and_head_of_the_states(tiny_model, prompt):
    """transformers' own list of states has its last entry normed already; the others are not."""
    model = tiny_model("llama")
    states = model.model(torch.tensor([prompt]), output_hidden_states=True).hidden_states
    by_hand = model.model.lm_head(model.model.model.norm(states[1][0])).log_softmax(-1)
    frame = look("logit", model, prompt, {"positions": 5})
    rows = frame.of(Distribution, level="layer 1")
    assert [one.node for one in rows] == list(range(len(prompt) - 5, len(prompt)))
    for one in rows:
        for token, logprob in one.top:
            assert logprob == pytest.approx(by_hand[one.node, token].item(), abs=1e-5)
    chosen = frame.of(Score, name="chosen", level="layer 1")
    assert [one.node for one in chosen] == [one.node for one in rows[:-1]]  # nothing follows the last token
    for one in chosen:
        row, token = by_hand[one.node], prompt[one.node + 1]
        assert one.total == pytest.approx(row[token].item(), abs=1e-5)
        assert one.rank == 1 + int((row > row[token]).sum())


def test_decision_depth_is_where_agreement_begins_for_good():
    positions = [(1, 2, 1, 1), (1, 1, 1, 1), (1, 1, 1, 0)]  # from the bottom up
    assert decision_depths(torch.tensor(positions).T) == [2, 0, 3]


def test_bad_requests_are_answered_with_a_sentence(tiny_model, prompt):
    model = tiny_model("llama")
    with pytest.raises(ValueError, match="There is no lens 'no'; choose one of: logit"):
        look("no", model, prompt)
    with pytest.raises(ValueError, match="has no option 'depth'"):
        look("logit", model, prompt, {"depth": 1})
    with pytest.raises(ValueError, match="reads 1 to 256 tokens of this model, not 300"):
        look("logit", model, [1] * 300)
    with pytest.raises(ValueError, match="reads hidden states of the target, which .* does not give; choose"):
        look("logit", ServedHere(model), prompt)


def test_a_lens_costs_forwards_of_its_own_kind(tiny_model, prompt):
    frame = look("logit", tiny_model("llama"), prompt)
    assert [(f.kind, f.tokens) for f in frame.forwards] == [("lens", len(prompt))]
    assert frame.cost.startswith(f"1 lens forward over {len(prompt)} tokens")
    assert frame.to_json()["forwards"][0]["kind"] == "lens"


def test_every_lens_says_what_it_is():
    for name, one in lenses().items():
        assert one.name == name and one.summary.endswith(".") and one.explains, name
        assert all(p.help.endswith(".") for p in one.parameters), name
