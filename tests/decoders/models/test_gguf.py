"""Files of GGUF are unpacked by transformers; what is missing, damaged or ambiguous is a sentence."""

import shutil

import numpy as np
import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models import memory_estimate
from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from decoders.models.names import Folder, resolve
from decoders.refusal import Refusal
from tests.helpers import tiny_models

END = "<|endoftext|>"  # the name that transformers gives the end in files of Qwen2


def written(path, made) -> None:
    """Writes a tiny Qwen2 as llama.cpp's converter does."""
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    config, vocabulary = made.model.config, made.tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get)
    tokens[made.tokenizer.eos_token_id] = END
    file = gguf.GGUFWriter(str(path), "qwen2")
    file.add_block_count(config.num_hidden_layers)
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    file.add_feed_forward_length(config.intermediate_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_vocab_size(len(tokens))
    file.add_tokenizer_model("gpt2")
    file.add_token_list(tokens)
    file.add_token_merges(["t h", "Ġ a"])
    file.add_eos_token_id(made.tokenizer.eos_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config.num_hidden_layers)
    for name, weight in made.model.state_dict().items():
        place, _, kind = name.rpartition(".")
        file.add_tensor(f"{names.get_name(place)}.{kind}", weight.cpu().numpy().astype(np.float32))
    for write in (file.write_header_to_file, file.write_kv_data_to_file, file.write_tensors_to_file):
        write()
    file.close()


def test_a_file_and_the_folder_that_holds_it_alone_are_the_model(tmp_path):
    made = tiny_models.make("qwen2", device="cpu")
    written(tmp_path / "own.gguf", made)
    model = load(str(tmp_path / "own.gguf"), "cpu")
    ids = [5, 6, 7, 8]
    with torch.inference_mode():
        pair = [one.model(torch.tensor([ids])).logits for one in (model, made)]
    torch.testing.assert_close(*pair, atol=1e-5, rtol=1e-5)
    said = footprint(str(tmp_path), "bfloat16", "cpu")
    assert said.parameters == model.facts()["parameters"] and said.weights == 2 * said.parameters
    assert model.cut("the cat") == made.cut("the cat") and model.eos == made.eos
    assert not model.unused_weights and not model.heads
    trace = Lane("greedy", ids, {"target": load(str(tmp_path), "cpu")}, limits=Limits(8)).run()
    assert trace.output() == tiny_models.generate(model, ids, max_new_tokens=8)


def test_several_files_are_a_question(tmp_path):
    for name in ("own-q4.gguf", "own-q8.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(Refusal, match="holds 2 GGUF files; name one of them, such as 'own-q4.gguf'"):
        resolve(str(tmp_path))
    one = resolve(str(tmp_path / "own-q8.gguf"))
    assert one == Folder(str(tmp_path / "own-q8.gguf"), tmp_path, "own-q8.gguf")
    shutil.copy(tmp_path / "own-q8.gguf", tmp_path / "model.safetensors")
    with pytest.raises(Refusal, match="holds no config.json"):  # the safetensors are what the folder means
        resolve(str(tmp_path))


def test_what_is_missing_or_damaged_is_a_sentence(tmp_path, monkeypatch):
    file = tmp_path / "own.gguf"
    for content, says in {b"": "own.gguf is empty", b"GGML1": "own.gguf is not a GGUF file .5 bytes"}.items():
        file.write_bytes(content)
        with pytest.raises(Refusal, match=says):
            footprint(str(file), "auto", "cpu")
    file.write_bytes(b"GGUF and no more")
    monkeypatch.setattr(memory_estimate, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match="is a GGUF file; to read it: pip install gguf accelerate"):
        load(str(file), "cpu")
    monkeypatch.undo()
    pytest.importorskip("gguf")
    with pytest.raises(Refusal, match="could not be loaded: "):
        load(str(file), "cpu")
