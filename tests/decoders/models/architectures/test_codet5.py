"""CodeT5's holes and CodeT5+'s modes: a right answer restores the text, a name has one fill, an empty
source is the begin mark alone, and what the vectors learn leaves the other modes as they are.
"""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoders.models.architectures.codet5 import CodeT5Config, CodeT5Stream
from decoders.models.architectures.sentinels import random_spans, splice, with_holes
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from explorer.training.data.holes import SENTINELS, Holes, module_tokenizer
from explorer.training.recipes.tiny_codet5 import (
    contrast,
    holes_right,
    learned,
    nearest,
    packed,
)
from explorer.training.small_streams import written

MARKS, END = list(range(100, 112)), 0


@given(st.lists(st.integers(2, 90), min_size=1, max_size=80), st.integers(0, 1000))
def test_the_right_answer_restores_any_text(text, seed):
    groups = [[span] for span in random_spans(len(text), random.Random(seed))]
    source, answer = with_holes(text, groups, MARKS, END)
    spliced = splice(source, answer, MARKS, END)
    assert spliced.text == text and not spliced.missing and not spliced.repeated


def test_spans_cover_about_15_percent():
    rng = random.Random(0)
    hidden = sum(end - begin for _ in range(400) for begin, end in random_spans(60, rng))
    assert 0.13 < hidden / (400 * 60) < 0.17


def test_a_name_has_one_sentinel_and_one_fill():
    source, answer = with_holes(
        [5, 6, 7, 5, 8, 5, 6], [[(1, 2), (6, 7)], [(0, 1), (3, 4), (5, 6)]], MARKS, END
    )
    assert source == [100, 101, 7, 100, 8, 100, 101] and answer == [100, 5, 101, 6, END]
    assert splice(source, [100, 9, 9, 101, 4, END], MARKS, END).text == [9, 9, 4, 7, 9, 9, 8, 9, 9, 4]


def test_missing_and_repeated_sentinels_are_filled_with_nothing_and_said():
    source = [3, 100, 4, 101, 5, 102]
    spliced = splice(source, [9, 100, 7, 101, 8, 101, 6, END, 102, 2], MARKS, END)
    assert spliced.text == [3, 7, 4, 5] and spliced.missing == [102] and spliced.repeated == [101]


@pytest.fixture(scope="module")
def holes():
    """Rows of modules."""
    return Holes(module_tokenizer(512))


def test_holes_of_modules_are_put_back(holes):
    rng = random.Random(5)
    for maker in (holes.spans, holes.identifiers):
        for _ in range(20):
            source, answer = maker(rng, False)
            text = holes.tokenizer.decode(splice(source[:-1], answer, holes.sentinels, holes.end).text)
            assert text.startswith("// module ") and text.endswith("endmodule\n")
            assert not any(mark in text for mark in SENTINELS)


@pytest.fixture(scope="module")
def model(holes):
    """Width 8, random."""
    torch.manual_seed(6)
    return CodeT5Stream(
        CodeT5Config(
            vocab_size=len(holes.tokenizer),
            d_model=8,
            d_kv=4,
            num_heads=2,
            d_ff=8,
            num_layers=1,
            num_decoder_layers=1,
            dropout_rate=0.0,
            feed_forward_proj="gated-silu",
            pad_token_id=1,
            eos_token_id=0,
            decoder_start_token_id=1,
            separator=[holes.arrow],
            sentinels=holes.sentinels,
        )
    ).eval()


@torch.no_grad()
def test_an_empty_source_is_the_begin_mark_alone(model):
    text = torch.tensor([[30, 41, 52, 60]])
    begin = model.t5.encoder(input_ids=torch.tensor([[0]])).last_hidden_state
    started = torch.cat([torch.tensor([[1]]), text], 1)
    plain = model.t5(encoder_outputs=(begin,), decoder_input_ids=started, use_cache=False).logits
    torch.testing.assert_close(model(text).logits, plain[:, 1:])


def test_the_contrastive_term_leaves_filling_and_continuing_untouched(model, holes):
    rng = random.Random(7)
    batch = packed([holes.spans(rng) for _ in range(4)])
    names = torch.tensor([40, 41])
    gradients = []
    for contrasted in (True, False):
        model.zero_grad()
        learned(model, batch, names, contrasted).backward()
        gradients.append({n: p.grad for n, p in model.named_parameters() if "projection" not in n})
    assert gradients[0].keys() == gradients[1].keys()
    assert all(torch.equal(gradients[0][name], gradients[1][name]) for name in gradients[0])
    assert contrast(model, *batch[:2]).requires_grad and model.projection.weight.grad is None


@pytest.fixture(scope="module")
def shipped() -> LoadedModel:
    """The trained one."""
    return load("tiny-codet5", "cpu", "float32")


@pytest.fixture(scope="module")
def unseen(holes):
    """Modules that were never read, with names hidden after their comments."""
    rng = random.Random("asked in a test")
    return [holes.identifiers(rng, True) for _ in range(32)]


def test_the_shipped_model_fills_names_far_more_often_than_by_chance(shipped, holes, unseen):
    """By chance one name in thirty would be right. A name's places all get the one fill."""
    wrote = written(shipped.model, packed(unseen), 8)
    assert holes_right(holes, wrote, [answer for _, answer in unseen]) > 0.2
    for (source, _), answer in zip(unseen, wrote, strict=True):
        filled = splice(source, answer, holes.sentinels, holes.end)
        assert not set(filled.text) & set(holes.sentinels)


def test_its_vectors_find_the_rest_of_a_text_far_more_often_than_by_chance(shipped, unseen):
    sources, seen, _ = packed(unseen)
    assert nearest(shipped.model, sources, seen) > 0.2  # by chance one in 32
