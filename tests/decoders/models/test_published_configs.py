"""What the configs of published heads say, key by key: used, checked against the tensors, or refused by
name. Layers to read as in SpecForge and SGLang, windows, vocabularies, and formats that are not read here.
"""

import pytest
import torch

from decoders.heads import Target, take_taps
from decoders.models.published import find_format, read_heads
from decoders.refusal import Refusal
from tests.decoders.models.test_published_heads import (
    CONFIG,
    FORM,
    D,
    V,
    check_eagle3,
    close,
    eagle3_tensors,
    eagle_tensors,
    medusa_tensors,
)
from tests.helpers import published_heads as files
from tests.helpers import tiny_models

PLAIN = files.llama3_turns(8, 500.0, None)


@pytest.fixture(scope="module")
def model():
    return tiny_models.make("llama", seed=3).model


@pytest.fixture(scope="module")
def taps(model):
    tokens = torch.randint(0, 250, (1, 14), generator=torch.Generator().manual_seed(5))
    return take_taps(model, tokens, (0, 1))


@pytest.fixture
def read(model, tmp_path):
    """Writes and reads heads with these tensors; changes: to CONFIG, layers of the parts of a config too."""

    def reads(tensors, **changes):
        name = files.write(tmp_path / "heads", CONFIG | changes, tensors)
        (module,) = read_heads(name, tmp_path / "heads", Target.of(model)).values()
        return module

    return reads


def test_layers_of_an_eagle_config_are_indices_of_the_layers_whose_output_is_taken(model, taps, read):
    """SpecForge's configs: SGLang adds 1 to each, since it captures what enters a layer."""
    tensors = eagle3_tensors("midlayer.", 64)
    module = read(tensors, eagle_config={"eagle_aux_hidden_state_layer_ids": [-1, 0, 0]})
    assert module.reads == (0, 1, 1)
    check_eagle3(module, tensors, Target.of(model), taps, "midlayer.", (0, 1, 1))


def test_layers_that_are_named_in_both_ways_must_agree(read):
    tensors, key = eagle3_tensors("midlayer.", 64), "eagle_aux_hidden_state_layer_ids"
    assert read(tensors, **{key: [1, 1, 1], "eagle_config": {key: [0, 0, 0]}}).reads == (1, 1, 1)
    with pytest.raises(Refusal, match=r"contradict themselves: .* is \[0, 0, 0\], counted as layers that"):
        read(tensors, **{key: [0, 0, 0], "eagle_config": {key: [0, 0, 0]}})


WINDOW = {"layer_types": ["sliding_attention"], "sliding_window": 4}


def test_the_layer_of_an_eagle_with_a_window_attends_to_its_last_entries(model, taps, read):
    tensors, target = eagle_tensors(), Target.of(model)
    module = read(tensors, **WINDOW)
    said = files.eagle_forward(
        tensors, "", target.embed, taps.hidden[0, :-1], taps.tokens[0, 1:], **FORM, turns=PLAIN, window=4
    )
    close(module.along(taps, 1)[0][0], (said @ target.head.T)[:-1])


def test_the_layer_of_an_eagle3_with_a_window_attends_to_its_last_entries(model, taps, read):
    tensors = eagle3_tensors("layers.0.", 64)
    module = read(tensors, **WINDOW, eagle_aux_hidden_state_layer_ids=[0, 1, 1])
    check_eagle3(module, tensors, Target.of(model), taps, "layers.0.", (0, 1, 1), window=4)


@pytest.mark.parametrize("fast", [False, True])
def test_drafted_entries_count_by_position_in_a_window(taps, read, fast):
    """A tree: each drafted path says what the same path says alone, of tokens that are known."""
    module = read(eagle_tensors(), **WINDOW)
    hidden, tokens = taps.hidden[0, :8], taps.tokens[0, 1:9]
    with torch.inference_mode(fast):
        tree = module.memory()
        module.begin(tree, hidden, tokens)
        module.expand(tree, [0, 0], torch.tensor([7, 9]))  # nodes 1 and 2
        branched = module.expand(tree, [1, 2], torch.tensor([11, 12]))
        for at, path in enumerate([(7, 11), (9, 12)]):
            chain = module.memory()
            module.begin(chain, hidden, tokens)
            module.expand(chain, [0], torch.tensor([path[0]]))
            alone = module.expand(chain, [1], torch.tensor([path[1]]))
            close(branched[at], alone[0])
            assert len(tree.past) == 3 and tree.past[2].flatten()[-4:].tolist() == [8, 8, 9, 9]


@pytest.mark.parametrize(
    "config",
    [
        {"sliding_window": 512, "use_sliding_window": False},
        {"sliding_window": 512, "use_sliding_window": False, "model_type": "qwen2"},
        {"sliding_window": None, "use_sliding_window": True},
        {"sliding_window": 512},
        {"sliding_window": 512, "layer_types": ["full_attention"]},
    ],
)
def test_a_window_that_the_layer_does_not_have_changes_nothing(read, config):
    """As in SpecForge's configs for Gemma 3 and Qwen 2.5; Llama has no window."""
    assert read(eagle_tensors(), **config).attention.window is None


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"sliding_window": 512, "model_type": "mistral"}, "name a sliding_window of 512, and not whether"),
        ({"sliding_window": 512, "use_sliding_window": True}, "say it in config.json with layer_types"),
        ({"layer_types": ["sliding_attention"]}, "has the type 'sliding_attention'"),
        ({"layer_types": ["linear_attention"]}, "has the type 'linear_attention', which is not known"),
    ],
)
def test_a_window_that_is_left_open_is_refused(read, config, words):
    with pytest.raises(Refusal, match=words):
        read(eagle_tensors(), **config)


def test_a_small_vocabulary_without_d2t_is_refused(read):
    tensors = eagle3_tensors("midlayer.", 64)
    del tensors["d2t"], tensors["t2d"]
    with pytest.raises(Refusal, match=r"a vocabulary of 64 tokens and no d2t that says which of .* 259"):
        read(tensors)


@pytest.mark.parametrize("offset", [-1, 250])
def test_a_d2t_beyond_the_targets_tokens_is_refused(read, offset):
    tensors = eagle3_tensors("midlayer.", 64)
    del tensors["t2d"]
    tensors["d2t"] = torch.full((64,), offset)
    with pytest.raises(Refusal, match="names tokens twice, or tokens beyond the target's"):
        read(tensors)


@pytest.mark.parametrize("tied", [False, True])
def test_an_eagle3_without_lm_head_borrows_the_targets_or_its_own_embedding(model, taps, read, tied):
    tensors = eagle3_tensors("midlayer.", 64)
    del tensors["lm_head.weight"]
    tensors["embed_tokens.weight"] = torch.randn(V, D)
    module = read(tensors, tie_word_embeddings=tied)
    kept = torch.arange(64) + tensors["d2t"]
    matrix = tensors["embed_tokens.weight"] if tied else Target.of(model).head
    check_eagle3(
        module, tensors | {"lm_head.weight": matrix[kept]}, Target.of(model), taps, "midlayer.", (1, 1, 1)
    )


def test_layers_are_counted_in_the_tensors(read):
    """EAGLE3-Vicuna1.3-13B's config says 40 layers, as its target has, and its file holds one."""
    assert read(eagle3_tensors("midlayer.", 64), num_hidden_layers=40).reads == (1, 1, 1)


def test_nulls_count_as_absent(read):
    nulls = dict.fromkeys(
        ("rope_scaling", "head_dim", "eagle_config", "layer_types", "sliding_window", "quantization_config")
    )
    read(eagle3_tensors("midlayer.", 64), **nulls, target_hidden_size=None, draft_vocab_size=None)
    read(eagle3_tensors("midlayer.", 64), eagle_config={"eagle_aux_hidden_state_layer_ids": None})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"quantization_config": {"bits": 4}}, "sets 'quantization_config', which is not known here"),
        ({"logit_scale": 2.0}, "sets 'logit_scale', which is not known here.*remove it from config.json"),
        ({"eagle_config": {"more": 1}}, "sets 'eagle_config.more', which is not known here"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "eagle_config.use_aux_hidden_state to False"),
        ({"draft_vocab_size": 32}, "draft_vocab_size is 32, and lm_head says 64"),
        ({"target_hidden_size": 64}, "their target's hidden size is 64"),
        ({"attention_bias": True}, "attention_bias is true, and the tensor .*q_proj.bias' is missing"),
        ({"mlp_bias": True}, "mlp_bias is true, and the tensor .* is missing"),
        ({"rope_scaling": {"type": "mrope"}}, "rotary positions of the type 'mrope'"),
    ],
)
def test_what_a_config_says_is_used_or_checked_or_refused_by_name(read, config, words):
    with pytest.raises(Refusal, match=words):
        read(eagle3_tensors("midlayer.", 64), **config)


@pytest.mark.parametrize(
    ("tensors", "config", "words"),
    [
        (medusa_tensors(), {"medusa_num_heads": 2, "medusa_num_layers": 9}, None),
        (medusa_tensors(), {"medusa_choices_of": 1}, "sets 'medusa_choices_of', which is not known here"),
        (medusa_tensors(), {"hidden_size": 64}, "their hidden size is 64, that of the target is 32"),
        (medusa_tensors(), {"vocab_size": 300}, "their vocabulary is 300, that of the target is 259"),
    ],
)
def test_medusas_config_is_read_in_the_same_way(model, tmp_path, tensors, config, words):
    """The authors' file of Vicuna 7B says 2 heads and holds 5: heads and blocks are counted."""
    name = files.write(tmp_path / "medusa", config, tensors)
    if words is None:
        assert read_heads(name, tmp_path / "medusa", Target.of(model))["medusa"].depth == 3
        return
    with pytest.raises(Refusal, match=words):
        read_heads(name, tmp_path / "medusa", Target.of(model))


@pytest.mark.parametrize("says", [True, False])
def test_the_bias_of_eagles_fc_is_checked(read, says):
    assert (read(eagle_tensors(bias=says), bias=says).join.bias is not None) == says
    with pytest.raises(Refusal, match="bias is .*, and the tensor 'fc.bias' is"):
        read(eagle_tensors(bias=not says), bias=says)


@pytest.mark.parametrize(
    ("config", "format"),
    [
        ({"architectures": ["DSparkDraftModel"]}, "DSparkDraftModel"),
        ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, "Eagle3DeepseekV2ForCausalLM"),
        ({"speculators_model_type": "draft_of_tomorrow"}, "draft_of_tomorrow"),
        ({"speculators_config": {"algorithm": "eagle4"}}, "eagle4"),
    ],
)
def test_a_declared_format_that_is_not_read_here_is_refused_as_that_format(tmp_path, config, format):
    """The tensors have EAGLE's names."""
    files.write(tmp_path / "heads", CONFIG | config, eagle3_tensors("layers.0.", 64))
    with pytest.raises(Refusal, match=f"have the format '{format}', which is not known here"):
        find_format(tmp_path / "heads")


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlamaForCausalLMEagle3"]},
        {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3"},
        {"architectures": ["Qwen2ForCausalLM"]},
    ],
)
def test_a_declared_format_that_is_read_here_is_found(tmp_path, config):
    files.write(tmp_path / "heads", CONFIG | config, eagle3_tensors("layers.0.", 64))
    assert find_format(tmp_path / "heads") == "eagle3"
