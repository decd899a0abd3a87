"""The cost model gives the worked numbers of its sources and agrees with torch's counter of operations."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM

from visualizers.analysis.cost_model import Shape, attention, layer_weights, step
from visualizers.analysis.roofline import DEVICES

SMALL = Shape(4, 256, 4, 4, 64, 704, 4096)
LAPTOP = DEVICES["laptop"]


def test_the_memory_walls_worked_example():
    one = step(SMALL, LAPTOP, 128, weight_bytes=4, cache_bytes=4)
    eight = step(SMALL, LAPTOP, 128, new_tokens=8, weight_bytes=4, cache_bytes=4)
    assert layer_weights(SMALL) == 802_816
    assert one["flops"] == 9_043_968 and one["bytes_weights"] + one["bytes_kv"] == 18_087_936
    assert one["ai"] == 0.5
    assert eight["flops"] == 72_351_744 and eight["ai"] == 4.0
    assert eight["bytes_kv"] == one["bytes_kv"]


def test_attentions_intensity_grows_with_the_drafted_tokens_only():
    assert attention(SMALL, 10)["ai"] == attention(SMALL, 999, batch=7)["ai"] == 1
    assert attention(SMALL, 10, new_tokens=5)["ai"] == 5


@pytest.mark.parametrize(
    "shape, elements, flops, ai",
    [
        (Shape(61, 1, 64, 1, 256, 1, 1), 1.02e9, 1.31e11, 128),
        (Shape(61, 1, 128, 1, 576, 1, 1, shared=True), 1.15e9, 5.89e11, 512),
        (Shape(94, 1, 64, 4, 128, 1, 1), 3.15e9, 1.01e11, 32),
        (Shape(54, 1, 64, 8, 128, 1, 1), 3.60e9, 5.80e10, 16),
    ],
    ids=["Step-3", "DeepSeek-V3", "Qwen3-235B", "ERNIE-4.5"],
)
def test_step_3s_table(shape, elements, flops, ai):
    cost = attention(shape, 32768, cache_bytes=1)
    assert cost["bytes"] == pytest.approx(elements, rel=0.01)
    assert cost["flops"] == pytest.approx(flops, rel=0.01)
    assert cost["ai"] == ai


def test_seconds_never_fall_with_more_context():
    seconds = [step(SMALL, LAPTOP, n, new_tokens=m)["seconds"] for m in (1, 64) for n in (1, 64, 512, 4096)]
    assert seconds[:4] == sorted(seconds[:4]) and seconds[4:] == sorted(seconds[4:])
    assert seconds[0] < seconds[3]


def test_counts_below_one_and_unmodelled_weights_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        step(SMALL, LAPTOP, 0)
    with pytest.raises(ValueError, match="attention"):
        layer_weights(Shape(1, 8, 2, 1, 4, 8, 8, shared=True))


@pytest.mark.parametrize("kv_heads, new, batch", [(4, 1, 1), (2, 8, 3)])
def test_operations_agree_with_torchs_counter(kv_heads, new, batch):
    shape = Shape(2, 64, 4, kv_heads, 16, 96, 128)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=128,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=kv_heads,
            head_dim=16,
            attn_implementation="eager",
        )
    ).eval()
    with torch.no_grad():
        past = model(torch.ones(batch, 40, dtype=torch.long), use_cache=True).past_key_values
        with FlopCounterMode(display=False) as counter:
            model(torch.ones(batch, new, dtype=torch.long), past_key_values=past)
    predicted = step(shape, LAPTOP, 40 + new, batch, new)["flops"]
    assert predicted == pytest.approx(counter.get_total_flops(), rel=0.01)
