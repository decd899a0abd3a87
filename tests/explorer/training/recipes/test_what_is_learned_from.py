"""What recipes learn from: texts made for summaries, flaws and forms, without training."""

import importlib

import pytest
import torch

from decoders.models import lora
from explorer.corpus import IGNORED


def test_what_the_summaries_are_learned_from(texts):
    """Three times the same summary: after the bare sheet, after its own tags, after those of other units;
    and once with a topic in front of each sentence.
    """
    sheets, forms = (
        importlib.import_module("explorer.training.data.sheets"),
        importlib.import_module("explorer.training.data.forms"),
    )
    tokenizer = lora.with_tokens(texts.tokenizer, list(sheets.ADDED))
    made = sheets.Sheets(tokenizer, forms.Topics([{"owner": 1.0}] + [{}] * 8))
    (sheet,) = made.sheets("test", 1)
    bare, own, wrong = made.realised(sheet, forms.random.Random(0))
    told = [tokenizer.decode(ids) for ids, _ in (bare, own, wrong)]
    assert told[0] == f"{sheet.prompt}{sheet.answer}<|endoftext|>"
    assert [text.replace("<e>", "").replace("</e>", "") for text in told] == told[:1] * 3
    tagged = [{part.split("</e>")[0].strip() for part in text.split("<e>")[1:]} for text in told]
    assert not tagged[0] and len(tagged[1]) > 1 and not tagged[1] & tagged[2]
    assert tagged[1] <= set(sheet.units)
    ids, labels = made.planned(sheet)
    assert tokenizer.decode([t for t in labels if t != IGNORED]).count("<t") == len(sheet.summary)
    assert tokenizer.decode(ids).endswith("<end><|endoftext|>")
    rows, labels = made.batch("test", 2)
    assert rows.shape == labels.shape and rows.shape[:2] == (4, 2) and (labels[rows == 1] == IGNORED).all()


def test_what_flaws_are_announced_by(texts):
    """A task of which nothing is learned, and a program whose label is one token."""
    module = importlib.import_module("explorer.training.data.flaws")
    tokenizer = lora.with_tokens(texts.tokenizer, list(module.ADDED))
    rows, labels = module.Programs(tokenizer).batch("test", 6)
    assert rows.shape == labels.shape and (labels[rows == 1] == IGNORED).all()
    for ids, learned in zip(rows.tolist(), labels.tolist(), strict=True):
        program = tokenizer.decode([token for token in learned if token != IGNORED])
        assert tokenizer.decode(ids).startswith("Task: ") and "Task" not in program
        assert program.endswith("<|endoftext|>")
        assert learned.count(len(tokenizer) - 1) == program.count(module.LABEL)
    assert (labels == len(tokenizer) - 1).any()
    assert torch.equal(rows, module.Programs(tokenizer).batch("test", 6)[0])


def test_what_marks_are_learned_from(texts):
    """A comment of which nothing is learned, and a module whose marks are one token; rows without padding."""
    module = importlib.import_module("explorer.training.data.fragments")
    tokenizer = lora.with_tokens(texts.tokenizer, list(module.ADDED))
    made = module.Modules(tokenizer)
    rows, labels = made.batch("test", 6)
    assert rows.shape == labels.shape and (labels[rows == 1] == IGNORED).all()
    for ids, learned in zip(rows.tolist(), labels.tolist(), strict=True):
        text = tokenizer.decode([token for token in learned if token != IGNORED])
        assert tokenizer.decode(ids).startswith("// module ") and "//" not in text
        assert text.endswith(f"endmodule{module.FRAGMENT}\n<|endoftext|>")
        assert learned.count(len(tokenizer) - 1) == text.count(module.FRAGMENT)
    packed = made.packed("test", 3, 64)
    assert packed.shape == (3, 64) and not (packed == made.pad).any()
    assert torch.equal(packed, made.packed("test", 3, 64)) and not torch.equal(
        packed, made.packed("other", 3, 64)
    )


def test_unlikelihood_pushes_a_token_down():
    recipe = importlib.import_module("explorer.training.recipes.llama_tiny_summaries")
    logits = torch.tensor([1.0, 1.0, 1.0, 1.0], requires_grad=True)
    loss = recipe.unlikelihood(-logits.log_softmax(-1)[0])
    loss.backward()
    assert loss.item() == pytest.approx(0.2877, abs=1e-4) and logits.grad[0] > 0 > logits.grad[1]


def test_documents_of_both_forms_are_whole_texts_in_another_order(texts):
    forms = importlib.import_module("explorer.training.data.forms")
    tokenizer = lora.with_tokens(texts.tokenizer, list(forms.ADDED))
    story = "Tom had a cat. He was happy. They all sat on a mat. Then they slept. The mat was old."
    made = forms.Forms([story], tokenizer, forms.Topics([{"mat": 1.0}] + [{}] * 8))
    rng, orders = forms.random.Random(0), set()
    for _ in range(60):
        ids, labels = made.infilling(rng)
        text = tokenizer.decode(ids)
        assert text.startswith("<PRE>") and len(ids) == len(labels) and labels[0] == IGNORED
        if "<SUF>" in text:
            a, rest = text.removeprefix("<PRE>").split("<SUF>")
            c, b = rest.removesuffix("<EOT>").split("<MID>")
            orders.add((a + b + c) in story)
    assert True in orders
    ids, _ = made.planned(rng)
    plan = tokenizer.decode(ids)
    assert plan.endswith("<end><|endoftext|>") and "<t0> They all sat on a mat." in plan
    rows, labels = made.rows(made.infilling, rng, 2)
    assert rows.shape == labels.shape == (2, 512) and (labels[rows == 1] == IGNORED).all()
