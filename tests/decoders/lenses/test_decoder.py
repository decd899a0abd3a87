"""DecoderLens: its last sentence is what the model writes by itself, and scores are those of the decoder."""

from types import SimpleNamespace

import pytest
import torch
import transformers

from decoders.lenses.layer_sentences import agreeing, encoder_states, through
from decoders.lenses.registry import look
from decoders.logits.distributions import log_softmax
from decoders.trace.events import Cell
from decoders.trace.scores import Score

SOURCE = [7, 9, 30, 12, 5, 44]
SMALL = dict(vocab_size=60, d_model=32, decoder_start_token_id=1, pad_token_id=1, eos_token_id=0)
T5 = dict(d_kv=8, d_ff=48, num_heads=4, num_layers=3, num_decoder_layers=2, dropout_rate=0.0)
BART = dict(encoder_layers=3, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4)
WIDE = dict(encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, forced_eos_token_id=None)


def made(kind: str) -> SimpleNamespace:
    """A random encoder-decoder with a stand-in for what a loaded model knows."""
    torch.manual_seed(3)
    if kind == "t5":
        config = transformers.T5Config(**SMALL, **T5, initializer_factor=3.0)
        model = transformers.T5ForConditionalGeneration(config)
    else:
        config = transformers.BartConfig(**SMALL, **BART, **WIDE, init_std=0.3, bos_token_id=2)
        model = transformers.BartForConditionalGeneration(config)
    model = model.eval().requires_grad_(False)
    spelling = {"bytes_of": lambda token: f"<{token}>".encode()}
    return SimpleNamespace(
        name=kind, model_kind="seq2seq", model=model, eos=frozenset([0]), context=64, **spelling
    )


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_last_layer_gives_ordinary_decoding(kind):
    model = made(kind)
    frame = look("decoder", model, SOURCE, {"max_new_tokens": 12})
    usual = model.model.generate(torch.tensor([SOURCE]), do_sample=False, num_beams=1, max_new_tokens=12)
    assert frame.tokens == usual[0].tolist() and frame.source == SOURCE
    last = [cell for cell in frame.of(Cell) if cell.level == frame.levels[-1]]
    assert [cell.token for cell in last] == frame.tokens[1:] and {cell.state for cell in last} == {"kept"}
    assert frame.levels == ["embeddings", "layer 1", "layer 2", "layer 3"]


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_each_layer_writes_and_scores_as_the_decoder_would_alone(kind):
    """One row of the batch after the other: what the decoder says token by token from that layer's states."""
    model = made(kind)
    frame = look("decoder", model, SOURCE, {"max_new_tokens": 12})
    states = encoder_states(model.model, SOURCE)
    for at, level in enumerate(frame.levels):
        sentence = [cell.token for cell in frame.of(Cell, level=level)]
        for place, token in enumerate(sentence):
            logits = through(model.model, states[at : at + 1], [1, *sentence[:place]])
            assert logits[0, -1].argmax() == token
        logprobs = log_softmax(through(model.model, states[at : at + 1], frame.tokens[:-1])[0])
        total = sum(logprobs[n, token].item() for n, token in enumerate(frame.tokens[1:]))
        (score,) = frame.of(Score, name="final sentence", level=level)
        assert score.total == pytest.approx(total, abs=1e-4)
    best = max(frame.of(Score, name="final sentence"), key=lambda score: score.total)
    assert best.level == frame.levels[-1]


def test_no_sentence_is_much_longer_than_the_final_one():
    """The final one ends at once where its first token is an end; the others may go on for eight tokens."""
    model = made("t5")
    first = look("decoder", model, SOURCE, {"max_new_tokens": 12}).tokens[1]
    model.eos = frozenset([first])
    frame = look("decoder", model, SOURCE, {"max_new_tokens": 40})
    lengths = [len(frame.of(Cell, level=level)) for level in frame.levels]
    assert lengths[-1] == 1 and 1 < max(lengths) <= 9


def test_words_agree_in_order():
    assert agreeing([5, 6, 7, 9], [5, 7, 8, 9]) == [True, False, True, True]
    assert agreeing([], [1]) == []
