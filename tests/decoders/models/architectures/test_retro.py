"""Retro: a gate of 0 leaves the plain decoder, neighbours reach only what comes after their chunk, and the
store finds the chunk that shares the rarest n-grams.
"""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from decoders.models.architectures.retro import RetroConfig, RetroForCausalLM, Store

SHAPE = dict(
    vocab_size=30,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    tie_word_embeddings=True,
    eos_token_id=0,
)
ROW = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]])
NEAR = torch.tensor([[[5, 6, 7, 8, 20, 21, 22, 23], [9, 1, 2, 3, 4, 5, 6, 7], [3, 4, 5, 6, 7, 8, 9, 2]]])


@pytest.fixture(scope="module")
def model():
    """Chunks of 4 tokens, a store of 10 chunks; random."""
    torch.manual_seed(4)
    net = RetroForCausalLM(RetroConfig(**SHAPE, chunk=4, store_tokens=40))
    for parameter in net.parameters():
        if parameter.ndim:
            torch.nn.init.normal_(parameter, std=0.3)
    net.store_ids.copy_(torch.randint(2, 30, (40,)))
    return net.eval()


@torch.no_grad()
def test_gate_0_equals_the_plain_decoder(model):
    plain = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
    plain.model.load_state_dict(model.model.state_dict())
    gated = model(ROW).logits
    model.cross.gate.fill_(0)
    try:
        torch.testing.assert_close(model(ROW).logits, plain(ROW).logits, atol=1e-5, rtol=1e-4)
    finally:
        model.cross.gate.fill_(1)
    torch.testing.assert_close(gated[:, :3], plain(ROW).logits[:, :3], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(gated[:, 3], plain(ROW).logits[:, 3], atol=1e-3)


@pytest.mark.parametrize("chunk", [0, 1, 2])
@torch.no_grad()
def test_neighbours_of_a_chunk_reach_its_last_place_and_what_follows(model, chunk):
    other = NEAR.clone()
    other[:, chunk] = 19
    before, after = (model(ROW, neighbours=near).logits for near in (NEAR, other))
    moved = (before != after).any(-1)[0]
    last = 4 * chunk + 3
    assert not moved[:last].any() and moved[last:].any() and moved[last]


@torch.no_grad()
def test_a_beginning_has_the_logits_of_the_whole(model):
    whole = model(ROW).logits
    for length in range(1, ROW.shape[1] + 1):
        part = model(ROW[:, :length]).logits
        torch.testing.assert_close(part[:, -1], whole[:, length - 1], atol=1e-5, rtol=1e-4)


def test_the_store_finds_the_rarest_shared_n_grams():
    #             0             1             2             3: has nothing after it
    store = Store([1, 2, 3, 4, 1, 2, 9, 4, 1, 2, 5, 6, 1, 2, 5, 7], chunk=4)
    assert store.nearest([5, 6, 8, 8]) == 2
    assert store.nearest([9, 1, 1, 1]) == 1
    assert store.nearest([3, 4, 8, 8]) == 0
    assert store.nearest([8, 8, 8, 8]) is None
    assert store.neighbour([5, 6, 8, 8]) == [1, 2, 5, 6, 1, 2, 5, 7]


def test_the_store_travels_with_the_weights(model, tmp_path):
    model.save_pretrained(tmp_path)
    again = RetroForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert torch.equal(again.store_ids, model.store_ids)
    torch.testing.assert_close(again(ROW).logits, model(ROW).logits)
