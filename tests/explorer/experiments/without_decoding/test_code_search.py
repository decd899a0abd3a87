"""Code search: names that give nothing away, vectors without the prompt, ranks, and maps that learn."""

import random

import pytest
import torch

from explorer import experiments
from explorer.experiments.reading import rows_of
from explorer.experiments.without_decoding import code_search
from explorer.experiments.without_decoding.code_search import (
    cosines,
    maps,
    modules,
    of_decoder,
    of_words,
    reciprocal_ranks,
    renamed,
)


def test_a_comment_and_its_module_get_the_same_letters():
    pair = ("// module adder: carry is a and reset\n", "assign carry = a & reset;\n")
    comment, module = renamed(pair, random.Random(0))
    y, a, b = comment.split(": ")[1].replace(" is ", " ").replace(" and ", " ").split()
    assert comment.startswith("// module m: ") and len({y, a, b}) == 3
    assert module == f"assign {y} = {a} & {b};\n"
    assert renamed(pair, random.Random(1)) != (comment, module)


def test_a_collection_has_no_comment_twice():
    pairs = modules("x", 40)
    assert len(dict(pairs)) == 40 and pairs == modules("x", 40) != modules("y", 40)


def test_the_prompt_is_read_and_not_averaged(tiny_model):
    model = tiny_model("llama")
    ids = torch.tensor([[*model.cut("find: "), *model.cut("add")]])
    states = model.model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
    (found,) = of_decoder(model)(["add"], "find: ")
    assert torch.allclose(found, states[len(model.cut("find: ")) :].mean(0), atol=1e-6)
    (plain,) = of_decoder(model)(["add"], "")
    assert not torch.allclose(found, plain)


def test_a_tie_counts_against_the_right_program():
    similar = torch.tensor([[0.9, 0.1, 0.2], [0.7, 0.5, 0.6], [0.4, 0.4, 0.4]])
    assert reciprocal_ranks(similar) == pytest.approx([1, 1 / 3, 1 / 3])


def test_rare_words_in_common_count_more():
    similar = of_words(["sum of xs", "last of xs"], ["sum(xs)", "xs[last]"])
    assert similar[0, 0] > similar[0, 1] and similar[1, 1] > similar[1, 0]


def test_the_maps_learn_which_vectors_belong_together(monkeypatch):
    monkeypatch.setattr(code_search, "STEPS", 200)
    torch.manual_seed(0)
    comments = torch.randn(64, 8)
    programs = comments @ torch.randn(8, 8)
    one, other = maps(comments, programs, 0)
    before = reciprocal_ranks(cosines(comments, programs))
    after = reciprocal_ranks(cosines(one(comments), other(programs)))
    assert sum(after) > 3 * sum(before)


def test_the_stored_answer_repeats_that_fine_tuned_decoders_are_ahead_of_the_encoder():
    rows = [row for row in rows_of(experiments.find_stored("code-search")) if row["MRR fine-tuned"]]
    (encoder,) = [row for row in rows if row["prompt"] == "none" and row["vectors from"] == "tiny-codet5"]
    others = [row for row in rows if row["vectors from"] != "tiny-codet5"]
    assert len(others) == 6
    assert all(row["MRR fine-tuned"] > encoder["MRR fine-tuned"] for row in others)
