"""Forbidden words: whole words, whatever their case and their place in tokens."""

import re

import pytest

from decoders.constraints.automaton import OfBytes
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.words import ForbiddenWords, WithWords, groups_of, inflected, words_of
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


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("a dog and an old man", True),
        ("An OLD MAN, dogs.", True),
        ("old man dog", True),
        ("the dogma of an old man", False),
        ("dog, old. man", False),
        ("hotdog old man", False),
        ("dog", False),
        ("", False),
    ],
)
def test_a_text_ends_only_with_a_word_of_each_group(text, ends):
    automaton = WithWords(groups_of("dog*|cat\nold man"))
    state = automaton.start()
    for byte in text.encode():
        state = automaton.step(state, byte)
    assert automaton.may_end(state) == ends


def test_groups_of_required_words():
    assert groups_of("cat|dog,, look*") == [["cat", "dog"], inflected("look")]
    for typed, said in ((" , |", "list of required words is empty"), ("a, -|b", "required word '-' must")):
        with pytest.raises(ValueError, match=said):
            groups_of(typed)


@pytest.mark.parametrize("strategy", ["sample", "beam", "speculative"])
def test_what_a_strategy_ends_has_the_words(strategy):
    words, ended, plain = [" cat", " dog", "s", ".", "<eos>"], 0, []
    for seed in range(8):
        models = {"target": TableModel(random_table(seed, 5), 5, eos=frozenset({4}), words=words)}
        models["draft"] = TableModel(random_table(seed + 50, 5), 5, eos=frozenset({4}), words=words)
        plain.append(Lane(strategy, [3], models, {}, seed, Limits(12)).run())
        given = {"constraint": "required_words", "constraint_text": "cat|cats, dog"}
        trace = Lane(strategy, [3], models, given, seed, Limits(12)).run()
        if trace.output()[-1] == 4:
            ended += 1
            assert re.search(r"\bcats?\b", trace.text()) and re.search(r"\bdog\b", trace.text())
    assert ended and any(one.output()[-1] == 4 and "dog" not in one.text() for one in plain)
