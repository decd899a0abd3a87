"""Multi-token-prediction layers inside a target's files, at small random sizes: DeepSeek-V3, GLM-4.5, GLM-5,
MiMo, Qwen3-Next and Qwen3.5, dense and with experts. The reference is a model with one layer more, into
which transformers has read the tensors.
"""

import json
from pathlib import Path

import pytest
import torch
import transformers as T
from safetensors.torch import load_file, save_file

from decoders.heads import Target, take_taps
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.refusal import Refusal
from tests.helpers import published_heads as files
from tests.helpers import tiny_models

D, V, L, EPS = 32, 259, 2, 1e-5
SHARED = dict(
    vocab_size=V, hidden_size=D, intermediate_size=48, num_attention_heads=4, num_key_value_heads=4,
    max_position_embeddings=256, rms_norm_eps=EPS, bos_token_id=None, eos_token_id=256, pad_token_id=None,
    initializer_range=0.2, tie_word_embeddings=False,
)  # fmt: skip
EXPERTS = dict(n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, n_shared_experts=1)
ROUTED = dict(**EXPERTS, n_group=1, topk_group=1, first_k_dense_replace=1)
LATENT = dict(kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)


def qwen3_next(layers: int):
    kinds = ["linear_attention", "full_attention", "full_attention"][:layers]
    sizes = dict(linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8)
    moe = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
    return T.Qwen3NextForCausalLM(
        T.Qwen3NextConfig(
            **SHARED, num_hidden_layers=layers, layer_types=kinds, head_dim=8, **sizes, **moe,
            linear_value_head_dim=8, shared_expert_intermediate_size=16,
        )
    )  # fmt: skip


def qwen3_5(layers: int, experts: bool):
    kinds = ["linear_attention", "full_attention", "full_attention"][:layers]
    sizes = dict(linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, head_dim=8)
    moe = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
    moe |= dict(shared_expert_intermediate_size=16)
    shared = {k: v for k, v in SHARED.items() if k != "intermediate_size" or not experts}
    turns = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = (T.Qwen3_5MoeTextConfig if experts else T.Qwen3_5TextConfig)(
        **shared, **sizes, **(moe if experts else {}), num_hidden_layers=layers, layer_types=kinds,
        linear_value_head_dim=8, rope_parameters=turns | {"mrope_section": [1, 1, 0]},
    )  # fmt: skip
    return (T.Qwen3_5MoeForCausalLM if experts else T.Qwen3_5ForCausalLM)(config)


def glm_5(layers: int):
    """With an indexer that leaves out most of the text; with fewer heads, many of its scores would be 0."""
    indexer = dict(index_topk=4, index_n_heads=12, index_head_dim=16)
    return T.GlmMoeDsaForCausalLM(
        T.GlmMoeDsaConfig(**SHARED, **ROUTED, **LATENT, **indexer, num_hidden_layers=layers)
    )


MAKERS = {
    "deepseek": lambda layers: T.DeepseekV3ForCausalLM(
        T.DeepseekV3Config(**SHARED, **ROUTED, **LATENT, num_hidden_layers=layers)
    ),
    "glm": lambda layers: T.Glm4MoeForCausalLM(
        T.Glm4MoeConfig(**SHARED, **ROUTED, num_hidden_layers=layers, head_dim=8)
    ),
    "mimo": lambda layers: T.Qwen2ForCausalLM(T.Qwen2Config(**SHARED, num_hidden_layers=layers)),
    "qwen3_next": qwen3_next,
    "qwen3_5": lambda layers: qwen3_5(layers, experts=False),
    "qwen3_5_moe": lambda layers: qwen3_5(layers, experts=True),
    "glm_5": glm_5,
}
QWEN = ("qwen3_next", "qwen3_5", "qwen3_5_moe")  # their norms multiply by 1 + weight
PARTS = {  # the token's norm, the state's norm, their map, the last norm; prefix of the layer
    "deepseek": (("enorm", "hnorm", "eh_proj", "shared_head.norm"), f"model.layers.{L}."),
    "glm": (("enorm", "hnorm", "eh_proj", "shared_head.norm"), f"model.layers.{L}."),
    "mimo": (("token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm"), "model.mtp_layers.0."),
    "glm_5": (("enorm", "hnorm", "eh_proj", "shared_head.norm"), f"model.layers.{L}."),
} | dict.fromkeys(QWEN, (("pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm"), "mtp."))


def written(folder, family: str):
    """(the folder with a target of L layers and its multi-token layer, the model with one layer more, the
    four tensors that are no part of the layer).
    """
    torch.manual_seed(7)
    deeper = MAKERS[family](L + 1).eval()
    for name, parameter in deeper.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 1.0 if family not in QWEN else 0.0, 0.1)
    deeper.save_pretrained(folder / "deeper")
    names, prefix = PARTS[family]
    rest = files.drawn({names[0]: (D,), names[1]: (D,), names[2]: (D, 2 * D), names[3]: (D,)}, seed=3)
    if family in QWEN:
        rest = {k: v - 1.0 if "norm" in k else v for k, v in rest.items()}
    state = {}
    for path in (folder / "deeper").glob("*.safetensors"):
        state |= load_file(path)
    inside = f"model.layers.{L}."
    layer = {k.removeprefix(inside): v for k, v in state.items() if k.startswith(inside)}
    base = {k: v for k, v in state.items() if not k.startswith(inside)}
    at = "mtp.layers.0." if family in QWEN else prefix
    extra = {at + k: v for k, v in layer.items()} | {prefix + f"{k}.weight": v for k, v in rest.items()}
    if family in ("deepseek", "glm", "glm_5"):  # they repeat what they share
        extra |= {
            prefix + "embed_tokens.weight": base["model.embed_tokens.weight"].clone(),
            prefix + "shared_head.head.weight": base["lm_head.weight"].clone(),
        }
    MAKERS[family](L).config.save_pretrained(folder)
    save_file(
        {k: v.contiguous() for k, v in (base | extra).items()}, folder / "model.safetensors", {"format": "pt"}
    )
    tiny_models.tokenizer().save_pretrained(folder)
    return str(folder), deeper, rest


def expected(family: str, deeper, rest, hidden, tokens) -> torch.Tensor:
    """What vLLM's code of each family says [T, d], before it becomes logits: the norms and the map by hand,
    the layer as transformers runs the last one of the deeper model.
    """
    names, _ = PARTS[family]
    add = 1.0 if family in QWEN else 0.0
    embedded = deeper.get_input_embeddings().weight[tokens].clone()
    if family not in QWEN:
        embedded[0] = 0.0  # position 0
    token, state = (files.rms(x, rest[n] + add, EPS) for x, n in zip((embedded, hidden), names, strict=False))
    both = torch.cat([state, token] if family == "mimo" else [token, state], -1)
    x = (both @ rest[names[2]].T)[None]
    count = x.shape[1]
    mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
    places = torch.arange(count)[None]
    turns = deeper.model.rotary_emb(
        x, places.expand(3, 1, -1) if "5" in family and family in QWEN else places
    )
    out = deeper.model.layers[L](x, attention_mask=mask, position_embeddings=turns)
    out = out[0] if isinstance(out, tuple) else out
    return files.rms(out[0], rest[names[3]] + add, EPS)


@pytest.mark.parametrize("family", MAKERS)
def test_a_layer_says_what_vllm_says(tmp_path, family):
    name, deeper, rest = written(tmp_path, family)
    target = load(name, dtype="float32")
    module = target.heads["eagle"]
    assert module.kind == "mtp"
    tokens = torch.randint(0, 250, (1, 10), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        taps = take_taps(target.model, tokens)
        said = expected(family, deeper, rest, taps.hidden[0, :-1], tokens[0, 1:])
        logits = said @ deeper.lm_head.weight.T
        found = module.along(taps, 3)
        torch.testing.assert_close(found[0][0], logits[:-1], atol=1e-4, rtol=1e-4)
    memory = module.memory()
    assert torch.allclose(module.begin(memory, taps.hidden[0, :4], tokens[0, 1:5]), found[0][0, 3], atol=1e-4)
    below = module.expand(memory, [0], tokens[0, 5:6])
    assert torch.allclose(below[0], found[1][0, 3], atol=1e-4)
    assert module.own_embedding is None and module.head is None  # equal to the target's: shared


@pytest.mark.parametrize("family", ["deepseek", "mimo", "glm_5", "qwen3_5", "qwen3_5_moe"])
def test_a_target_drafts_with_its_own_layer_and_writes_greedys_text(tmp_path, family):
    name, _, _ = written(tmp_path, family)
    target = load(name, dtype="float32")
    trace = Lane(
        "eagle", [5, 6, 7], {"target": target}, {"tree": "chain", "depth": 2}, limits=Limits(16)
    ).run()
    plain = Lane("greedy", [5, 6, 7], {"target": target}, limits=Limits(16)).run()
    assert trace.output() == plain.output() and trace.costs.totals()["proposed"] > 0


def test_the_norm_of_a_target_multiplies_by_what_its_family_says():
    torch.manual_seed(0)
    model = qwen3_next(2)
    torch.nn.init.normal_(model.model.norm.weight, 0.0, 0.3)
    x = torch.randn(3, D)
    target = Target.of(model)
    found = torch.nn.functional.rms_norm(x, (D,), target.last_norm, target.eps)
    torch.testing.assert_close(found, model.model.norm(x))


@pytest.mark.parametrize("family", ["qwen3_5", "qwen3_5_moe"])
def test_a_checkpoint_that_can_see_is_read_by_its_language_model(tmp_path, family):
    """Qwen's files name the language model `model.language_model` and its config `text_config`."""
    name, _, _ = written(tmp_path, family)
    plain, path = load(name, dtype="float32"), tmp_path / "model.safetensors"
    state = {k.replace("model.", "model.language_model.", 1): v for k, v in load_file(path).items()}
    save_file(state | {"model.visual.pos_embed.weight": torch.zeros(4, 4)}, path, {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    outer = {"model_type": family, "text_config": config, "tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(outer), "utf-8")
    found, wanted = load(name, dtype="float32").heads["eagle"], plain.heads["eagle"]
    assert found.kind == "mtp" and found.state_dict().keys() == wanted.state_dict().keys()
    assert all(torch.equal(value, wanted.state_dict()[key]) for key, value in found.state_dict().items())


def test_a_layer_that_lacks_its_indexer_is_refused(tmp_path):
    """GLM-5's layer could not take over the choice of the layer below: it reads other positions."""
    name, _, _ = written(tmp_path, "glm_5")
    path = Path(name) / "model.safetensors"
    state = load_file(path)
    del state[f"model.layers.{L}.self_attn.indexer.wk.weight"]
    save_file(state, path, {"format": "pt"})
    with pytest.raises(Refusal, match="indexer.wk"):
        load(name, dtype="float32").heads["eagle"]
