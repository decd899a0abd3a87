"""Model families as people have them: random weights at toy size, in several files of a folder, loaded as any
folder is. Greedy decoding writes what `generate` writes, whichever engine the model needs.
"""

import json

import pytest
import torch
import transformers as T

from decoders.engine.engine import Engine
from decoders.engine.recurrent_engine import RecurrentEngine
from decoders.engine.state_engine import OwnCacheEngine
from decoders.lane import Lane, Limits
from decoders.models import quantised_packages
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from decoders.refusal import Refusal
from tests.helpers import tiny_models

WORDS = len(tiny_models.tokenizer())
SIZES = dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, initializer_range=0.35)
ENDS = dict(bos_token_id=None, eos_token_id=tiny_models.tokenizer().eos_token_id, pad_token_id=None)
HEADS = dict(intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256)
PLAIN = SIZES | ENDS | HEADS | dict(tie_word_embeddings=False)
HALF_SLIDING = dict(sliding_window=6, layer_types=["sliding_attention", "full_attention"])
EXPERTS = dict(num_experts_per_tok=2, num_local_experts=4)
LATENT = PLAIN | dict(  # keys and values are made of latents, which are kept
    num_key_value_heads=4,
    kv_lora_rank=8,
    q_lora_rank=8,
    qk_rope_head_dim=4,
    qk_nope_head_dim=8,
    v_head_dim=6,
    n_routed_experts=4,
    num_experts_per_tok=2,
    n_group=1,
    topk_group=1,
    moe_intermediate_size=16,
)
STATE = SIZES | ENDS | dict(state_size=8)
TREES = {  # families that take a tree mask
    "qwen3": lambda: T.Qwen3Config(**PLAIN, head_dim=8),
    "gemma3": lambda: T.Gemma3TextConfig(**PLAIN, head_dim=8, **HALF_SLIDING),
    "mistral": lambda: T.MistralConfig(**PLAIN, sliding_window=6),
    "phi": lambda: T.PhiConfig(**PLAIN),
    "olmo2": lambda: T.Olmo2Config(**PLAIN),
    "olmo3": lambda: T.Olmo3Config(**PLAIN, **HALF_SLIDING),
    "gemma3n": lambda: T.Gemma3nTextConfig(
        **PLAIN | dict(num_hidden_layers=4),
        head_dim=8,
        sliding_window=6,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=2,
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=WORDS,
        laurel_rank=4,
        altup_num_inputs=2,
    ),
    "gpt_oss": lambda: T.GptOssConfig(**PLAIN, head_dim=8, **HALF_SLIDING, **EXPERTS),
    "gemma4": lambda: T.Gemma4TextConfig(  # heads of two widths, and layers without keys of their own
        **PLAIN | dict(num_hidden_layers=4),
        head_dim=8,
        global_head_dim=16,
        sliding_window=6,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=2,
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=WORDS,
    ),
    "llama4": lambda: T.Llama4TextConfig(
        **PLAIN, head_dim=8, intermediate_size_mlp=48, num_local_experts=2, attention_chunk_size=8
    ),
    "deepseek_v3": lambda: T.DeepseekV3Config(**LATENT, first_k_dense_replace=1),
    "deepseek_v32": lambda: T.DeepseekV32Config(  # fewer keys than the prompt has are chosen in each layer
        **LATENT, index_n_heads=2, index_head_dim=8, index_topk=5, mlp_layer_types=["dense", "sparse"]
    ),
    "minicpm3": lambda: T.MiniCPM3Config(**LATENT),
}
DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8)
HALF_DELTA = dict(layer_types=["linear_attention", "full_attention"])
SPARSE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
MAMBA = dict(mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=8, mamba_chunk_size=8)
STATES = {  # state spaces and hybrids
    "mamba": lambda: T.MambaConfig(**STATE),
    "mamba2": lambda: T.Mamba2Config(**STATE, num_heads=8, head_dim=8, n_groups=1, chunk_size=8),
    "jamba": lambda: T.JambaConfig(
        **PLAIN, num_experts=2, attn_layer_period=2, attn_layer_offset=1, mamba_d_state=8, mamba_dt_rank=4
    ),
    "qwen3_next": lambda: T.Qwen3NextConfig(
        **PLAIN, **DELTA, **HALF_DELTA, **SPARSE, head_dim=8, shared_expert_intermediate_size=16
    ),
    "qwen3_5": lambda: T.Qwen3_5TextConfig(**PLAIN, **DELTA, **HALF_DELTA, head_dim=8),
    "olmo_hybrid": lambda: T.OlmoHybridConfig(**PLAIN, **DELTA | dict(linear_num_key_heads=4), **HALF_DELTA),
    "granitemoehybrid": lambda: T.GraniteMoeHybridConfig(
        **PLAIN, **MAMBA, **EXPERTS, layer_types=["mamba", "attention"], shared_intermediate_size=16
    ),
    "falcon_h1": lambda: T.FalconH1Config(**PLAIN, **MAMBA, head_dim=8, mamba_d_ssm=64),
    "nemotron_h": lambda: T.NemotronHConfig(
        **{key: value for key, value in PLAIN.items() if key != "num_hidden_layers"},
        layers_block_type=["mamba", "attention"],
        head_dim=8,
        mamba_num_heads=8,
        mamba_head_dim=8,
        n_groups=1,
        ssm_state_size=8,
        chunk_size=8,
    ),
    "lfm2": lambda: T.Lfm2Config(**PLAIN, layer_types=["conv", "full_attention"]),
}
COPIES = {  # attention that a tree mask would get wrong, and states outside transformers' cache
    "bloom": lambda: T.BloomConfig(**SIZES | ENDS, n_head=4),
    "rwkv": lambda: T.RwkvConfig(**SIZES | ENDS, attention_hidden_size=32, context_length=256),
    "gpt_neo": lambda: T.GPTNeoConfig(  # its own masks go by the order of keys in the cache
        **SIZES | ENDS | dict(num_layers=2, num_heads=4, intermediate_size=48, max_position_embeddings=256),
        attention_types=[[["global", "local"], 1]],
        window_size=6,
    ),
}
FAMILIES = TREES | STATES | COPIES
PROMPT = tiny_models.tokenizer()("the cat sat on a mat; the cat")["input_ids"]


def saved(folder, family: str, dtype: torch.dtype = torch.float32) -> str:
    """The name of a folder with a family's toy model, its weights in several files."""
    torch.manual_seed(0)
    model = T.AutoModelForCausalLM.from_config(FAMILIES[family]()).to(dtype)
    model.generation_config = T.GenerationConfig(eos_token_id=ENDS["eos_token_id"])
    model.save_pretrained(folder, max_shard_size="40KB")
    tiny_models.tokenizer.__wrapped__().save_pretrained(folder)
    assert len(list(folder.glob("*.safetensors"))) > 1
    return str(folder)


def engine_of(family: str) -> type:
    """The engine that a family should run on."""
    kinds = {Engine: TREES, RecurrentEngine: STATES, OwnCacheEngine: COPIES}
    return next(engine for engine, families in kinds.items() if family in families)


def greedy(model) -> list[int]:
    return Lane("greedy", PROMPT, {"target": model}, limits=Limits(12)).run().output()


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_is_generate_in_every_family(family, tmp_path):
    name = saved(tmp_path, family)
    model = load(name, "cpu")
    assert type(model.engine) is engine_of(family)
    assert greedy(model) == tiny_models.generate(model, PROMPT, max_new_tokens=12)
    estimate = footprint(name, "auto", "cpu")
    stored = {tensor.data_ptr(): tensor.numel() for tensor in model.model.state_dict().values()}
    assert estimate.parameters == sum(stored.values())
    if family in TREES:
        assert estimate.per_token == model.engine.cache.nbytes / model.engine.cache.slots


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", ["qwen3", "gemma3", "mamba"])
def test_half_precision_is_kept_and_decodes(family, dtype, tmp_path):
    model = load(saved(tmp_path, family, getattr(torch, dtype)), "cpu", dtype)
    assert model.facts()["dtype"] == dtype
    ours, theirs = greedy(model), tiny_models.generate(model, PROMPT, max_new_tokens=12)
    if dtype == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        assert is_tie(model, ours, theirs)  # this processor rounds sums of different shapes differently
    else:
        assert ours == theirs


def is_tie(model, ours: list[int], theirs: list[int]) -> bool:
    """Whether two texts are equal up to a place at which their two tokens have logits of one bfloat16."""
    at = next((n for n, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]), None)
    if at is None:
        return True
    row = model.model(torch.tensor([PROMPT + ours[:at]])).logits[0, -1].float()
    step = torch.finfo(torch.bfloat16).eps * float(row.max())
    return abs(float(row[ours[at]] - row[theirs[at]])) <= step


METHODS = {  # how config.json says it -> what is to be installed
    "bitsandbytes": ({"load_in_4bit": True}, "bitsandbytes accelerate"),
    "gptq": ({"bits": 4}, "optimum gptqmodel"),
    "awq": ({"bits": 4}, "gptqmodel accelerate"),
    "compressed-tensors": ({}, "compressed-tensors"),
    "torchao": ({"quant_type": {"default": {}}}, "torchao"),
    "fp8": ({"weight_block_size": [128, 128]}, "accelerate"),
    "mxfp4": ({}, "accelerate"),
}


@pytest.fixture
def without_packages(monkeypatch):
    """None of the packages for quantised weights is installed."""
    monkeypatch.setattr(quantised_packages, "find_spec", lambda name: None)


def quantised_folder(folder, method: str | None, settings: dict) -> str:
    """The name of a tiny model that is said to be quantised."""
    name = tiny_models.save(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    given = settings | ({"quant_method": method} if method else {})
    text = json.dumps(config | {"quantization_config": given})
    (folder / "config.json").write_text(text, encoding="utf-8")
    return name


@pytest.mark.parametrize("method", METHODS)
def test_quantised_weights_without_their_packages_are_a_sentence(method, tmp_path, without_packages):
    settings, packages = METHODS[method]
    name = quantised_folder(tmp_path, method, settings)
    said, stored = footprint(name, "auto", "cpu"), (tmp_path / "model.safetensors").stat().st_size
    unpacked = 4 * said.parameters  # the processor has no such numbers
    assert said.weights == (unpacked if method in ("fp8", "mxfp4") else stored) and said.copies == 1
    assert f"parameters, quantised with {method}: " in said.sentence()
    assert said.sentence().endswith(f"; to load it: pip install {packages}.")
    with pytest.raises(Refusal, match=f"is quantised with {method}; to load it: pip install {packages}.$"):
        load(name, "cpu")


def test_older_files_of_bitsandbytes_name_no_method(tmp_path, without_packages):
    name = quantised_folder(tmp_path, None, {"load_in_8bit": True})
    with pytest.raises(Refusal, match="is quantised with bitsandbytes; to load it"):
        load(name, "cpu")


def test_a_method_that_nobody_knows_is_a_sentence(tmp_path):
    name = quantised_folder(tmp_path, "nobody's", {})
    assert "quantised with nobody's: " in footprint(name, "auto", "cpu").sentence()
    with pytest.raises(Refusal, match="is quantised with nobody's, which transformers does not know"):
        load(name, "cpu")


def test_a_text_ends_where_longrope_would_rescale_it():
    scaled = dict(rope_type="longrope", short_factor=[1.0] * 4, long_factor=[3.0] * 4)
    torch.manual_seed(0)
    config = T.Phi3Config(**PLAIN, rope_parameters=scaled, original_max_position_embeddings=40)
    model = T.Phi3ForCausalLM(config).eval().requires_grad_(False)
    loaded = LoadedModel("phi", model, tiny_models.tokenizer())
    assert type(loaded.engine) is Engine and loaded.context == 40
    assert "Beyond 40 tokens this model rescales" in loaded.note
    trace = Lane("greedy", PROMPT, {"target": loaded}, limits=Limits(200)).run()
    assert len(trace.output()) == 40 - len(PROMPT)
    tokens, ours = list(PROMPT), trace.output()
    for token in ours:  # without a cache, as the model is defined
        assert model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax() == token
        tokens.append(token)
