"""What a tape keeps is what the model computed: parts add up to states, the last row is the model's own, and
nobody else's forward is heard.
"""

import threading

import pytest
import torch
import transformers

from decoders.lenses.tape import Parts, listening, record
from decoders.refusal import Refusal
from tests.helpers import tiny_models

LIKE = ["llama", "qwen2", "qwen3", "gpt2", "gpt_neox", "opt", "gemma3", "mixtral", "phi3"]
ROUNDING = 1e-4


@pytest.mark.parametrize("kind", LIKE)
def test_parts_add_up_to_the_states(kind, tiny_model, prompt):
    model = tiny_model(kind).model
    tape = record(model, prompt, layers=True)
    assert torch.allclose(tape.logits, model(torch.tensor([prompt])).logits[0], atol=1e-5)
    assert torch.allclose(tape.read(tape.streams[-1]), tape.logits, atol=1e-5)
    for at, layer in enumerate(tape.layers):
        assert torch.equal(layer.pre, tape.streams[at]) and torch.equal(layer.post, tape.streams[at + 1])
        assert torch.allclose(layer.pattern.sum(-1), torch.ones(()), atol=1e-5)
        for place in range(len(prompt)):
            parts = layer.head_parts(place).sum((0, 1))
            bias = 0 if layer.bias_part(place) is None else layer.bias_part(place)
            assert (layer.pre[place] + parts + bias - layer.mid[place]).abs().max() < ROUNDING
        assert (layer.mid + layer.mlp - layer.post).abs().max() < ROUNDING
        assert layer.parallel == (kind == "gpt_neox") and (layer.scale is not None) == (kind == "gemma3")


def test_an_output_bias_is_a_part_of_its_own(prompt):
    """The tiny models begin with biases of zero; here they are not."""
    model = tiny_models.make("gpt2").model
    torch.manual_seed(0)
    for layer in model.transformer.h:
        layer.attn.c_proj.bias.normal_()
        layer.attn.c_attn.bias.normal_()  # a value's bias is counted once, since a row's weights sum to 1
    for layer in record(model, prompt, layers=True).layers:
        whole = layer.head_parts(3).sum((0, 1)) + layer.bias_part(3)
        assert layer.bias.any() and (whole - layer.attended[3]).abs().max() < ROUNDING


def test_a_layer_of_another_build_is_refused_in_a_sentence(prompt):
    config = transformers.MambaConfig(vocab_size=300, hidden_size=16, state_size=4, num_hidden_layers=1)
    model = transformers.MambaForCausalLM(config).eval()
    with pytest.raises(Refusal, match="choose another model"):
        record(model, prompt, layers=True)


def test_the_forwards_of_other_threads_are_not_heard(tiny_model, prompt):
    model = tiny_model("gpt2").model
    with listening(Parts(model), layers=True) as heard:
        other = threading.Thread(target=lambda: model(torch.tensor([prompt])))
        other.start()
        other.join()
        assert not heard.streams and not heard.attention
        model(torch.tensor([prompt]))
    assert len(heard.streams) == 3 and len(heard.attention) == 2
    model(torch.tensor([prompt]))
    assert len(heard.streams) == 3  # and nothing is heard afterwards
