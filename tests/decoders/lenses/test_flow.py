"""Information flow routes: the worked numbers, and what must hold of any model's weights."""

import pytest
import torch

from decoders.lenses.flow_weights import Flow, flow_of, importances
from decoders.lenses.registry import look
from decoders.lenses.tape import record
from decoders.trace.events import Depend, Distribution
from tests.helpers import tiny_models


def one_state(attention, residual, mlp=0.25, mid=0.75) -> Flow:
    """A single layer and position whose attention reads that position with some heads."""
    return Flow(
        attention=torch.tensor(attention)[None, :, None, None],
        residual=torch.tensor([[residual]]),
        bias=torch.zeros(1, 1),
        mlp=torch.tensor([[mlp]]),
        mid=torch.tensor([[mid]]),
        parallel=False,
    )


def test_the_hand_example():
    parts = torch.tensor([[3.0, 1.0], [1.0, 1.0], [0.0, -1.0]])
    whole = parts.sum(0)
    assert whole.tolist() == [4.0, 1.0]
    assert importances(parts, whole).tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])
    far = (parts - whole).norm(dim=-1)  # with the L2 norm they would be others
    near = (whole.norm() - far).clamp(min=0)
    assert (near / near.sum()).tolist() == pytest.approx([0.73550, 0.26450, 0.0], abs=5e-6)


def test_what_is_at_most_tau_is_dropped_head_by_head():
    cut = one_state([0.02, 0.28], 0.70).over(0.04)
    weights = [*cut.attention.flatten().tolist(), cut.residual.item()]
    assert weights == pytest.approx([0.0, 0.28571, 0.71429], abs=5e-6)
    two = one_state([0.03, 0.03], 0.94)
    assert two.over(0.04).attention.tolist() == [[[[0.0]], [[0.0]]]]  # though both together are 0.06
    kept = two.over(0.04, renormalise=False)
    assert kept.by_source.item() == pytest.approx(0.06) and kept.residual.item() == pytest.approx(0.94)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox", "gemma3"])
def test_weights_of_a_state_sum_to_one(kind, tiny_model, prompt):
    flow = flow_of(record(tiny_model(kind).model, prompt, layers=True))
    mids = flow.attention.sum((1, 3)) + flow.residual + flow.bias
    sums = [mids + flow.mlp] if kind == "gpt_neox" else [mids, flow.mlp + flow.mid]
    cut = flow.over(0.01)
    after = cut.attention.sum((1, 3)) + cut.residual + cut.bias
    sums += [after + cut.mlp] if kind == "gpt_neox" else [after, cut.mlp + cut.mid]
    sums.append(flow.tokens().sum(-1))
    for one in sums:
        assert torch.allclose(one, torch.ones(()), atol=1e-5)
    assert (flow.attention.triu(1) == 0).all() and (flow.tokens().triu(1) == 0).all()
    assert (flow.attention >= 0).all() and flow.attention.max() <= 1


def test_a_larger_tau_keeps_a_part_of_the_edges(tiny_model, prompt):
    flow = flow_of(record(tiny_model("llama").model, prompt, layers=True))
    few, many = (flow.over(tau, renormalise=False).by_source > 0 for tau in (0.1, 0.02))
    assert few.any() and (many & ~few).any() and not (few & ~many).any()


def test_blocks_that_add_nothing_leave_residual_edges_alone(prompt):
    model = tiny_models.make("llama").model
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    flow = flow_of(record(model, prompt, layers=True))
    assert not flow.attention.any() and not flow.mlp.any() and not flow.bias.any()
    assert (flow.residual == 1).all() and (flow.mid == 1).all()
    assert torch.equal(flow.tokens(), torch.eye(len(prompt)))


def test_a_state_that_no_part_helps_comes_from_its_own_stream(prompt):
    """A model of zeros: no part of any state is larger than nothing."""
    model = tiny_models.make("llama").model
    for parameter in model.model.parameters():
        parameter.zero_()
    flow = flow_of(record(model, prompt, layers=True))
    assert (flow.residual == 1).all() and (flow.mid == 1).all() and not flow.attention.any()


def test_weights_of_a_position_do_not_change_while_a_text_grows(tiny_model, prompt):
    model = tiny_model("qwen3").model
    whole, begun = (flow_of(record(model, ids, layers=True)) for ids in (prompt, prompt[:9]))
    assert torch.allclose(whole.attention[:, :, :9, :9], begun.attention, atol=1e-4)
    assert torch.allclose(whole.mlp[:, :9], begun.mlp, atol=1e-4)


def test_the_frame_names_what_states_say_and_which_tokens_they_come_from(tiny_model, prompt):
    model = tiny_model("llama")
    frame = look("flow", model, prompt, {"positions": 6})
    first = len(prompt) - 6
    own = model.model(torch.tensor([prompt])).logits[0].log_softmax(-1)
    for one in frame.of(Distribution, view="state", level="layer 2"):
        assert one.top[0][1] == pytest.approx(own[one.node].max().item(), abs=1e-5)
    assert {one.view for one in frame.of(Distribution, level="layer 1")} == {"state", "attention", "mlp"}
    edges = frame.of(Depend)
    assert {e.kind for e in edges} == {"flow"} and {e.target for e in edges} == {*range(first, len(prompt))}
    for target in range(first, len(prompt)):
        assert sum(e.weight for e in edges if e.target == target) == pytest.approx(1, abs=1e-5)
