"""Forbidden words: whole words, whatever their case and their place in tokens."""

import re

import pytest

from decoders.constraints.automaton import OfBytes
from decoders.constraints.grammars import Vocabulary
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.words import ForbiddenWords, words_of
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from tests.helpers import tiny_models
from tests.helpers.losslessness import random_table

UNWANTED = re.compile(r"\b(cat|dogs)\b", re.IGNORECASE)
WORDS = ["the ", "cat", "Cat", "s", " dog", "alog", ".", "old", " man", "c", "at", "catalog"]
CONSTRAINT = ForbiddenWords(["cat", "old man"], Vocabulary([w.encode() for w in WORDS], [], [], None))


def forbidden(*tokens: str) -> set[str]:
    state = CONSTRAINT.start()
    for token in tokens:
        state = CONSTRAINT.advance(state, WORDS.index(token))
        assert state is not None and CONSTRAINT.may_end(state)
    allowed = CONSTRAINT.allowed(state).tolist()
    assert [CONSTRAINT.advance(state, t) is not None for t in range(len(WORDS))] == allowed
    return {word for word, kept in zip(WORDS, allowed, strict=True) if not kept}


def test_a_word_is_forbidden_at_its_beginning_alone_and_in_any_case():
    assert forbidden() == {"cat", "Cat"}
    assert forbidden("the ") == {"cat", "Cat"}
    assert forbidden("the ", "c") == {"at"}
    assert forbidden("s") == set()  # scat is another word
    assert forbidden("s", "c") == set()
    assert forbidden(".", "c") == {"at"}


def test_a_longer_word_is_another_one_where_a_token_holds_it():
    assert "catalog" not in forbidden() and forbidden("catalog") == set()


def test_words_of_several_words():
    assert forbidden("old") == {" man"}
    assert forbidden("s", "old") == set()


def test_disjunctions_and_endings_are_spelt_out():
    assert words_of("dog|cat, look*\nlike*") == [
        "dog", "cat", "look", "looks", "lookes", "looked", "looking", "like", "likes", "liked", "liking",
    ]  # fmt: skip
    for typed, said in ((" , |", "list of forbidden words is empty"), ("a, -", "'-' must begin and end")):
        with pytest.raises(ValueError, match=said):
            words_of(typed)


@pytest.mark.parametrize("strategy", ["greedy", "sample", "beam", "speculative"])
def test_no_strategy_writes_them(strategy):
    words, plain = [" cat", " dog", "s", ".", " CAT"], []
    for seed in range(8):
        models = {"target": TableModel(random_table(seed, 5), 5, words=words)}
        models["draft"] = TableModel(random_table(seed + 50, 5), 5, words=words)
        plain.append(Lane(strategy, [3], models, {}, seed, Limits(8)).run().text())
        given = {"constraint": "words", "constraint_text": "cat|dogs"}
        text = Lane(strategy, [3], models, given, seed, Limits(8)).run().text()
        assert not UNWANTED.search(text)
    assert any(UNWANTED.search(text) for text in plain)


def test_the_tokens_that_are_tried_are_all_that_matter():
    """The mask is the one of a walk over the whole vocabulary, in every state of some texts."""
    target = tiny_models.make()
    constraint = ForbiddenWords(["the", "a t", "mat", "h"], vocabulary_of(target, target.eos))
    for text in ("The cat sat on a t", "thematic a ma tt ha", "a", ""):
        state = constraint.start()
        for byte in (None, *text.encode()):
            state = state if byte is None else constraint.automaton.step(state, byte) or constraint.start()
            if constraint.may_end(state):
                walked = OfBytes._walked(constraint, state)
                assert constraint.allowed(state).tolist() == walked.tolist()
