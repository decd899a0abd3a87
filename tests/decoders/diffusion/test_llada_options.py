"""The options of LLaDA's own code: classifier-free guidance and two ways to keep a text from ending early,
against values computed by hand.
"""

import pytest
import torch

from decoders.engine.engine import Work
from decoders.lane import Lane, Limits
from decoders.models.tabular_denoiser import TabularDenoiser, TabularScorer
from decoders.refusal import Refusal
from decoders.trace.events import Cell, Distribution, Forward
from tests.helpers import tiny_models

# What a model says of each of two positions, of tokens 0, 1 and 2, with and without the prompt.
WITH = torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.3, 0.5]])
WITHOUT = torch.tensor([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])
END = 2


class TwoViews(TabularDenoiser):
    """Independent positions, whose rows depend on whether anything was given."""

    def attach(self, tree):
        return Views(self)


class Views(TabularScorer):
    def denoise(self, canvases, start, stop):
        self.work = Work(tokens=sum(map(len, canvases)), rows=len(canvases))
        told = [WITHOUT if canvas[0] == self.engine.mask else WITH for canvas in canvases]
        first = len(canvases[0]) - 2
        return torch.stack([rows[start - first : stop - first].log() for rows in told])


def run(parameters, eos=frozenset()):
    model = TwoViews({(0, 0): 0.5, (1, 1): 0.25, (2, 2): 0.25}, 3, eos)
    return Lane("masked_diffusion", [0], {"target": model}, parameters, 0, Limits(2)).run()


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_guidance_moves_the_logits_away_from_those_without_the_prompt(scale):
    """In probabilities: WITH^(scale + 1) / WITHOUT^scale, normalized."""
    weights = WITH ** (scale + 1) / WITHOUT**scale
    want = weights / weights.sum(-1, keepdim=True)
    trace = run({"cfg_scale": scale})
    assert trace.output() == want.argmax(-1).tolist() == [1, 1 if scale == 2.0 else END]
    cells = {c.position: c for step in trace.steps for c in step.of(Cell) if c.state == "committed"}
    for position in (0, 1):
        assert cells[1 + position].confidence == pytest.approx(float(want[position].max()), abs=1e-6)


def test_guidance_is_one_forward_of_two_rows_and_none_at_zero():
    forwards = [f for step in run({"cfg_scale": 2.0}).steps for f in step.of(Forward)]
    assert [f.rows for f in forwards] == [2, 2]
    plain = run({"cfg_scale": 0.0})
    assert plain.output() == [0, END] and plain.output() == run({}).output()
    assert [f.rows for step in plain.steps for f in step.of(Forward)] == [1, 1]


def test_guidance_equals_a_plain_loop_on_a_model(tiny_model):
    """What was given is masked: the prompt and the suffix."""
    model = tiny_model("masked")
    prompt, mask = [40, 41, 42], model.engine.mask
    first = [*prompt, *[mask] * 6, *model.encode_after(prompt, "end")]
    row, everywhere = list(first), torch.zeros(1, 1, len(first), len(first))
    while masks := [p for p in range(3, 9) if row[p] == mask]:
        bare = [mask if first[p] != mask else token for p, token in enumerate(row)]
        cond, un = model.model(torch.tensor([row, bare]), attention_mask=everywhere).logits[:, masks, :mask]
        best, tokens = (un + 2.5 * (cond - un)).softmax(-1).max(-1)
        row[masks[int(best.argmax())]] = int(tokens[best.argmax()])
    parameters = {"cfg_scale": 1.5, "suffix": "end"}
    found = Lane("masked_diffusion", prompt, {"target": model}, parameters, 0, Limits(6)).run().output()
    assert found == tiny_models.cut(row[3:9], model)[: len(found)] and found


def test_guidance_leaves_the_impossible_tokens_of_a_table_impossible():
    model = TabularDenoiser({(0, 1): 0.75, (1, 0): 0.25}, 2)
    trace = Lane("masked_diffusion", [0], {"target": model}, {"cfg_scale": 3.0}, 0, Limits(2)).run()
    assert trace.output() == [0, 1]


def test_guidance_and_a_cache_are_refused():
    with pytest.raises(Refusal, match=r"cfg_scale reads two canvases .* set cache to none"):
        run({"cfg_scale": 1.0, "cache": "prefix"})


def test_a_text_whose_logits_of_an_end_are_minus_infinity_never_ends():
    assert run({}, frozenset({END})).output() == [0, END]
    trace = run({"logits_eos_inf": True}, frozenset({END}))
    assert trace.output() == [0, 1]
    rows = [d for step in trace.steps for d in step.of(Distribution)]
    assert dict(rows[-1].top)[1] == pytest.approx(torch.tensor(0.3 / 0.5).log().item(), abs=1e-6)


def test_masks_whose_token_ends_the_text_are_filled_last():
    """By margin the second position comes first: .5 - .3 is more than .5 - .4, and its token is the end."""
    plain = run({"order": "margin"}, frozenset({END}))
    last = run({"order": "margin", "confidence_eos_eot_inf": True}, frozenset({END}))

    def order(trace):
        return [c.position for s in trace.steps for c in s.of(Cell) if c.state == "committed"]

    assert order(plain) == [2, 1] and order(last) == [1, 2]
    assert plain.output() == last.output() == [0, END]


@pytest.mark.parametrize("policy", ["quota", "threshold", "factor", "entropy bound"])
def test_with_nothing_but_ends_a_block_is_filled_all_the_same(policy):
    model = TabularDenoiser({(END,) * 4: 1.0}, 3, frozenset({END}))
    parameters = {"confidence_eos_eot_inf": True, "policy": policy, "tokens_per_forward": 3}
    trace = Lane("masked_diffusion", [0], {"target": model}, parameters, 0, Limits(4)).run()
    assert trace.output() == [END]
