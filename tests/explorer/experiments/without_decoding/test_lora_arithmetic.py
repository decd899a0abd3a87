"""Sums of the shipped low-rank modules: the texts they are asked, and what a weight of 1 gives."""

import torch

from decoders.models.editing.lora_algebra import combined
from decoders.models.loading import load
from explorer.corpus import IGNORED
from explorer.experiments.without_decoding import lora_arithmetic


def test_texts_have_the_tokens_of_both_modules_and_labels_behind_their_prompts(monkeypatch):
    for name, value in dict(TEXTS=2, STORIES=2, LENGTH=6).items():
        monkeypatch.setattr(lora_arithmetic, name, value)
    models = {"target": load("llama-tiny", "cpu")}
    pair = [lora_arithmetic.load(name) for name in lora_arithmetic.PAIR]
    size = models["target"].engine.vocabulary
    kinds = lora_arithmetic.texts(models, pair)
    assert list(kinds) == list(lora_arithmetic.KINDS)
    assert (kinds["Verilog"][0] == size).any() and len(models["target"].tokenizer) == size
    for rows, labels in kinds.values():
        assert rows.shape == labels.shape and rows.max() < size + 14
        learned = labels != IGNORED
        assert torch.equal(rows[learned], labels[learned]) and learned.any()
    assert not (kinds["summaries"][1][:, 0] != IGNORED).any()  # a prompt has no loss
    asked = kinds | {"summaries": kinds["stories"]}  # the Verilog module alone has no token of the other
    first, base = combined([(1.0, pair[0]), (0.0, pair[1])]), models["target"].model
    plain = lora_arithmetic.losses(lora_arithmetic.with_products(models, pair[0]), asked)
    both = lora_arithmetic.losses(lora_arithmetic.with_products(models, first), asked)
    assert max(abs(a - b) for a, b in zip(plain, both, strict=True)) < 0.05
    assert plain[0] < 0.5 and base.config.vocab_size == size
