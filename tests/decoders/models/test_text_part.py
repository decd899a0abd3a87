"""Models that read images besides text: their language model alone is loaded, and decodes as the whole model
does, on the tree engine.
"""

import json
from importlib.util import find_spec

import pytest
import torch
import transformers as T
from safetensors.torch import load_file, save_file

from decoders.engine.engine import Engine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from decoders.refusal import Refusal
from tests.helpers import tiny_models

WORDS = tiny_models.tokenizer()
PLAIN = dict(
    vocab_size=len(WORDS), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, max_position_embeddings=256, initializer_range=0.35,
    pad_token_id=None, bos_token_id=None, eos_token_id=WORDS.eos_token_id,
)  # fmt: skip
EYES = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28)
EYES |= dict(patch_size=14)
MANY = dict(depth=1, num_heads=2, patch_size=4, out_hidden_size=32)  # of Qwen's
IMAGE = len(WORDS) - 2
MARKS = dict(image_token_id=IMAGE, video_token_id=IMAGE, vision_start_token_id=1, vision_end_token_id=2)
M_ROPE = dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 1, 1]))
WHOLE = {  # a model of each family, and the class of its language model
    "qwen2_vl": (
        lambda: T.Qwen2VLConfig(
            text_config=PLAIN | M_ROPE, vision_config=MANY | dict(embed_dim=16, hidden_size=32), **MARKS
        ),
        "TextDecoder",
    ),
    "qwen2_5_vl": (
        lambda: T.Qwen2_5_VLConfig(
            text_config=PLAIN | M_ROPE,
            vision_config=MANY | dict(hidden_size=16, intermediate_size=16, fullatt_block_indexes=[0]),
            **MARKS,
        ),
        "TextDecoder",
    ),
    "qwen3_vl": (
        lambda: T.Qwen3VLConfig(
            text_config=PLAIN | M_ROPE,
            vision_config=MANY | dict(hidden_size=16, intermediate_size=16, deepstack_visual_indexes=[0]),
            **MARKS,
        ),
        "TextDecoder",
    ),
    "qwen3_vl_moe": (
        lambda: T.Qwen3VLMoeConfig(
            text_config=PLAIN | M_ROPE | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16),
            vision_config=MANY | dict(hidden_size=16, intermediate_size=16, deepstack_visual_indexes=[0]),
            **MARKS,
        ),
        "TextDecoder",
    ),
    "llava": (
        lambda: T.LlavaConfig(
            text_config=T.LlamaConfig(**PLAIN),
            vision_config=T.CLIPVisionConfig(**EYES, projection_dim=16),
            image_token_id=IMAGE,
        ),
        "LlamaForCausalLM",
    ),
    "mistral3": (
        lambda: T.Mistral3Config(
            text_config=T.MistralConfig(**PLAIN, sliding_window=None),
            vision_config=T.PixtralVisionConfig(**EYES, head_dim=8),
            image_token_id=IMAGE,
        ),
        "MistralForCausalLM",
    ),
    "gemma3": (
        lambda: T.Gemma3Config(
            text_config=T.Gemma3TextConfig(
                **PLAIN, sliding_window=6, layer_types=["sliding_attention", "full_attention"]
            ),
            vision_config=T.SiglipVisionConfig(**EYES),
            mm_tokens_per_image=4,
            image_token_id=IMAGE,
        ),
        "Gemma3ForCausalLM",
    ),
    "smolvlm": (
        lambda: T.SmolVLMConfig(
            text_config=T.LlamaConfig(**PLAIN), vision_config=EYES, scale_factor=2, image_token_id=IMAGE
        ),
        "LlamaForCausalLM",
    ),
}  # fmt: skip
PROMPT = WORDS("the cat sat on a mat; the cat")["input_ids"]


def saved(folder, config: T.PreTrainedConfig) -> T.PreTrainedModel:
    """The whole toy model, saved into a folder with the tokenizer."""
    torch.manual_seed(0)
    whole = T.AutoModelForMultimodalLM.from_config(config).eval()
    whole.generation_config = T.GenerationConfig(eos_token_id=WORDS.eos_token_id)
    whole.save_pretrained(folder)
    tiny_models.tokenizer.__wrapped__().save_pretrained(folder)
    return whole


@pytest.mark.parametrize("family", WHOLE)
def test_its_text_part_decodes_as_the_whole_does(family, tmp_path):
    config, class_name = WHOLE[family]
    whole = saved(tmp_path, config())
    model = load(str(tmp_path), "cpu")
    assert type(model.model).__name__ == class_name and type(model.engine) is Engine
    said, held = footprint(str(tmp_path), "auto", "cpu"), model.facts()["parameters"]
    assert said.parameters == held < sum(one.numel() for one in whole.parameters())
    assert "reads text alone here, without its " in model.note and "no place" not in model.note
    ours = Lane("greedy", PROMPT, {"target": model}, limits=Limits(12)).run().output()
    ids = torch.tensor([PROMPT])
    wanted = whole.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
    assert ours == tiny_models.cut(wanted[0, len(PROMPT) :].tolist(), model)
    assert tiny_models.generate(model, PROMPT, max_new_tokens=12) == ours


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_branches_of_a_tree_have_the_whole_models_numbers(family, tmp_path):
    """Three rows of positions, equal for text, at each node its own depth."""
    whole = saved(tmp_path, WHOLE[family][0]())
    tree = Tree(PROMPT)
    left, right = tree.add(len(PROMPT) - 1, 8), tree.add(len(PROMPT) - 1, 9)
    leaf = tree.add(left, 10)
    rows = load(str(tmp_path), "cpu").engine.attach(tree).score([right, leaf])
    with torch.inference_mode():
        wanted = [whole(input_ids=torch.tensor([tree.text(node)])).logits[0, -1] for node in (right, leaf)]
    torch.testing.assert_close(rows, torch.stack(wanted), atol=1e-4, rtol=1e-4)


def test_the_rows_of_a_head_that_is_tied_stay_so(tmp_path):
    saved(tmp_path, T.Qwen2VLConfig(**WHOLE["qwen2_vl"][0]().to_dict() | dict(tie_word_embeddings=True)))
    model = load(str(tmp_path), "cpu").model
    assert model.config.tie_word_embeddings and model.lm_head.weight is model.get_input_embeddings().weight


def test_a_prompt_read_in_both_directions_is_refused(tmp_path):
    text = T.GemmaConfig(**PLAIN)
    eyes = T.SiglipVisionConfig(**EYES, projection_dim=32)
    saved(
        tmp_path,
        T.PaliGemmaConfig(text_config=text, vision_config=eyes, projection_dim=32, image_token_id=IMAGE),
    )
    with pytest.raises(Refusal, match="does not read a text from left to right; choose a causal"):
        load(str(tmp_path), "cpu")


def test_a_model_that_needs_an_image_is_refused(tmp_path):
    text = T.OPTConfig(
        vocab_size=len(WORDS), hidden_size=32, ffn_dim=48, num_hidden_layers=1, num_attention_heads=4,
        word_embed_proj_dim=32, max_position_embeddings=256,
    )  # fmt: skip
    formed = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    saved(
        tmp_path,
        T.Blip2Config(
            text_config=text,
            vision_config=T.Blip2VisionConfig(**EYES),
            qformer_config=T.Blip2QFormerConfig(**formed, vocab_size=20, encoder_hidden_size=16),
        ),
    )
    with pytest.raises(Refusal, match="does not read text alone .*pixel_values"):
        load(str(tmp_path), "cpu")


@pytest.mark.skipif(find_spec("timm") is not None, reason="the whole can be built where timm is")
def test_a_whole_that_lacks_a_package_is_not_built(tmp_path):
    """Gemma 3n's images need timm; transformers reads its text part out of the files of the whole."""
    more = dict(hidden_size_per_layer_input=8, vocab_size_per_layer_input=len(WORDS), num_kv_shared_layers=0)
    more |= dict(laurel_rank=4, altup_num_inputs=2, sliding_window=6, layer_types=["full_attention"] * 2)
    config = T.Gemma3nConfig(text_config=T.Gemma3nTextConfig(**PLAIN, **more))
    torch.manual_seed(0)
    alone = T.AutoModelForCausalLM.from_config(config.text_config).eval()
    alone.save_pretrained(tmp_path)
    config.save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    text = {name.replace("model.", "model.language_model.", 1): one for name, one in load_file(file).items()}
    save_file(text | {"model.vision_tower.x": torch.ones(1)}, file, {"format": "pt"})
    model, ids = load(str(tmp_path), "cpu"), torch.tensor([PROMPT])
    with torch.inference_mode():
        torch.testing.assert_close(model.model(ids).logits, alone(ids).logits, atol=1e-4, rtol=1e-4)
    assert model.parts_left_out == ["model.vision_tower"] and not model.unused_weights
    assert footprint(str(tmp_path), "auto", "cpu").parameters == model.facts()["parameters"]


@pytest.mark.skipif(find_spec("timm") is not None, reason="the whole can be built where timm is")
def test_a_whole_that_neither_can_be_built_nor_read_in_part_names_the_package(tmp_path):
    config = T.FastVlmConfig(text_config=T.Qwen2Config(**PLAIN))
    T.AutoModelForCausalLM.from_config(config.text_config).save_pretrained(tmp_path)
    config.save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(Refusal, match="needs a package that is not installed: .*timm"):
        load(str(tmp_path), "cpu")


def test_a_template_that_expects_a_list_of_parts_gets_one(tmp_path):
    saved(tmp_path, WHOLE["llava"][0]())
    template = (
        "{% for m in messages %}{% for part in m.content if part.type == 'text' %}USER: {{ part.text }} "
    )
    template += "{% endfor %}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": template}), "utf-8")
    model = load(str(tmp_path), "cpu")
    assert model.chats and model.render("hi", "be brief") == "USER: be brief USER: hi ASSISTANT:"
