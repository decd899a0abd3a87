"""What a vector holds: texts that state facts twice, and the measures on vectors made by hand."""

import random

import pytest
import torch

from explorer.experiments.models.text_vectors import which
from explorer.experiments.small_trainings import one_vector
from explorer.experiments.small_trainings.one_vector import WAYS, made_texts, nearest, trained, words_found
from explorer.experiments.small_trainings.topic_decoders import FACTS, TELLS, fact_of, sentences_of
from explorer.tasks.summaries import make_sheet


def test_a_text_states_each_fact_in_both_wordings():
    rng = random.Random(0)
    facts = [fact_of(unit, FACTS) for unit in make_sheet(rng).units[:3]]
    said = sentences_of(one_vector.worded(facts, rng))
    for forms, dot in ((FACTS, ""), (TELLS, ".")):
        stated = [fact for one in said if (fact := fact_of(one.removesuffix(".") + dot, forms))]
        assert sorted(stated, key=str) == sorted(facts, key=str)


@pytest.fixture
def data(monkeypatch):
    for name, value in dict(TEXTS=30, LEARNED=10, HELD_OUT=4, WIDTH=16, LAYERS=1, STEPS=2, BATCH=2).items():
        monkeypatch.setattr(one_vector, name, value)
    return made_texts()


def test_texts_worded_anew_have_the_words_that_their_facts_are_about(data):
    first, second = (which(texts, data.vocabulary)[:, data.about] for texts in (data.texts[-4:], data.anew))
    assert torch.equal(first, second) and (first.sum(1) >= 2).all()
    assert not torch.equal(data.texts[-4:], data.anew)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_training_gives_vectors(data, way):
    model = trained(way, data, 0)
    assert (model.decoder is None) == (way.decoder == 0)
    words, found, beside = one_vector.measured(model, data)
    assert all(0 <= share <= 1 for share in (words, found, beside)) and (way.bag or found == beside)


def test_a_linear_map_finds_all_words_in_vectors_that_spell_them_and_few_in_noise(monkeypatch):
    monkeypatch.setattr(one_vector, "HELD_OUT", 50)
    torch.manual_seed(0)
    there = (torch.rand(400, 12) < 0.3).float()
    there[:, 0] = 1.0
    assert words_found(there @ torch.randn(12, 12), there) == 1.0
    assert words_found(torch.randn(400, 12), there) < 0.7


def test_the_nearest_of_the_same_vectors_is_the_same_text():
    vectors = torch.nn.functional.normalize(torch.randn(20, 8), dim=-1)
    assert nearest(vectors, vectors) == 1.0 and nearest(vectors, vectors.roll(1, 0)) == 0.0
