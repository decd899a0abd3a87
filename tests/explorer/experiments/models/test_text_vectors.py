"""Vectors of texts: what encoder and decoder see, and which words a text has."""

import pytest
import torch

from explorer.experiments.models.text_vectors import HIDDEN, PADDING, TextVectors, hidden, which

WORDS = torch.tensor([[2, 3, 2, 4, PADDING], [5, 6, 7, 8, 9]])


def made(decoder=1, seen=0.3, bag=False):
    torch.manual_seed(0)
    return TextVectors(10, 5, 16, 1, decoder, seen, bag).eval()


def test_which_words_a_text_has():
    assert which(WORDS, 10).nonzero().tolist() == [
        [0, 2],
        [0, 3],
        [0, 4],
        [1, 5],
        [1, 6],
        [1, 7],
        [1, 8],
        [1, 9],
    ]


def test_padding_is_never_hidden_and_one_word_always_is():
    torch.manual_seed(0)
    assert hidden(WORDS, 0.0).nonzero().tolist() == [[0, 0]]
    assert torch.equal(hidden(WORDS, 1.1), WORDS != PADDING)
    many = torch.full((100, 100), 2)
    assert float(hidden(many, 0.7).float().mean()) == pytest.approx(0.7, abs=0.02)


def test_padding_does_not_change_a_vector():
    model = made()
    assert torch.allclose(model.vectors(WORDS[:1]), model.vectors(WORDS[:1, :4]), atol=1e-6)


def test_a_decoder_without_words_rebuilds_them_from_the_vector():
    model, nothing = made(), torch.full((1, 5), HIDDEN)
    vector = torch.randn(1, 16)
    one, other = (model.read(model.decoder, nothing, vector * by) for by in (1, -1))
    assert (one - other)[:, 1:].abs().amax(-1).gt(1e-4).all()


def test_the_decoder_teaches_the_encoder_through_the_vector_alone(monkeypatch):
    """Without hidden words for the encoder, its gradient is that of the rebuilt words."""
    model = made(seen=0.0)
    monkeypatch.setattr("explorer.experiments.models.text_vectors.HIDE", 0.0)
    states = model.read(model.encoder, WORDS)
    cut = model.filled(model.read(model.decoder, WORDS, states[:, 0].detach()), WORDS > 0, WORDS)
    cut.backward()
    assert all(one.grad is None for one in model.encoder.parameters())
    model.loss(WORDS).backward()
    assert all(one.grad is not None for one in model.encoder.parameters())


def test_the_scores_are_the_largest_over_the_tokens_that_are_there():
    model = made(bag=True)
    states = model.read(model.encoder, WORDS)
    scores = model.scores(states, WORDS)
    assert torch.allclose(scores[0], model.word(states[0, 1:5]).amax(0))
    both = model.vectors(WORDS)
    assert both.shape == (2, 26)
    assert torch.allclose(both[:, :16].norm(dim=1), torch.ones(2))
    assert torch.allclose(both[:, 16:].norm(dim=1), torch.ones(2))
