"""A model that fills masks after a causal past: its cache is that of a plain causal pass, whatever masks
stood after it when it was filled.
"""

import pytest
import torch
from transformers.cache_utils import DynamicCache

from decoders.diffusion.methods.set_block import block_sees
from decoders.engine.causal_masked_engine import CausalMaskedEngine
from decoders.engine.tree import Tree
from tests.helpers.tiny_models import make

TEXT = [5, 9, 17, 33, 60, 4, 8, 21]


@pytest.fixture(scope="module")
def engine():
    return CausalMaskedEngine(make("masked").model)


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def plain(engine, tokens):
    """(logits, cache) of a causal pass by transformers itself."""
    cache = DynamicCache()
    with torch.inference_mode():
        logits = engine.model(torch.tensor([tokens]), past_key_values=cache, use_cache=True).logits
    return logits[0, :, : engine.vocabulary], cache


def check_cache(cache, wanted, length):
    assert cache.get_seq_length() == length
    for layer, want in zip(cache.layers, wanted.layers, strict=True):
        torch.testing.assert_close(layer.keys, want.keys[:, :, :length], atol=1e-5, rtol=0)
        torch.testing.assert_close(layer.values, want.values[:, :, :length], atol=1e-5, rtol=0)


def test_its_causal_rows_are_those_of_a_plain_causal_pass(engine):
    """Ordinary decoding stays available: masks after the text change none of its logits."""
    masks = [engine.mask] * 3
    scorer = engine.attach(Tree(TEXT))
    logits = scorer.read([*TEXT, *masks], list(range(11)), block_sees(8, 3), keep=8)
    want, cache = plain(engine, TEXT)
    torch.testing.assert_close(logits[:8], want, atol=1e-5, rtol=0)
    check_cache(scorer.cache, cache, 8)


@pytest.mark.parametrize("masks", [0, 1, 5])
@pytest.mark.parametrize("sees", [block_sees, lambda kept, open_: causal(kept + open_)])
def test_what_is_cached_does_not_depend_on_the_masks_behind_it(engine, masks, sees):
    scorer = engine.attach(Tree(TEXT))
    scorer.read(TEXT[:5], list(range(5)), causal(5), keep=5)
    scorer.read([*TEXT[5:], *[engine.mask] * masks], list(range(5, 8 + masks)), sees(3, masks), keep=3)
    check_cache(scorer.cache, plain(engine, TEXT)[1], 8)


def test_a_mask_sees_a_known_token_to_its_right(engine):
    """In physical order the last token stands before the mask, at its true position."""

    def row(last):
        scorer = engine.attach(Tree(TEXT))
        return scorer.read([5, 9, last, engine.mask], [0, 1, 3, 2], causal(4), keep=2)[3]

    assert not torch.allclose(row(17), row(33), atol=1e-3)


def test_what_is_not_kept_leaves_no_trace(engine):
    scorer = engine.attach(Tree(TEXT))
    scorer.read(TEXT, list(range(8)), causal(8), keep=6)
    assert scorer.work.tokens == 8 and scorer.used == 6 and scorer.peak == 8
    again = scorer.read(TEXT[6:], [6, 7], causal(2), keep=0)
    torch.testing.assert_close(again, plain(engine, TEXT)[0][6:], atol=1e-5, rtol=0)
    scorer.close()
    assert scorer.used == 0
