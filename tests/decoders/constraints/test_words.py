"""Forbidden and required words: whole words of any script, whatever their case and their place in tokens."""

import random
import re
import unicodedata
from collections import Counter

import pytest

from decoders.constraints.automaton import OfBytes
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.words import (
    ForbiddenWords,
    WithoutWords,
    WithWords,
    groups_of,
    inflected,
    words_of,
)
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from tests.helpers import tiny_models

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
    texts = ["d", "og", " do", "dog—", "g…", "ß", "s", "É", "e", "\u0301", "ca", "fe"]
    halves = [b"\xc3", b"\x9f", b"\x9fs", b"\xe2", b"\x80", b"\x94d", b" s", b"\xe1", b"\xba\x9e"]
    spelt = [text.encode() for text in texts] + halves
    split = Vocabulary([*spelt, *(s + t for s in spelt for t in spelt)], [], [], None)
    several = ["dog", "ss", "é", "rock—d", "café", "fe"]
    for constraint, text in (
        *(
            (ForbiddenWords(["the", "a t", "mat", "h"], vocabulary_of(target, target.eos)), text)
            for text in ("The cat sat on a t", "thematic a ma tt ha", "a", "")
        ),
        *((ForbiddenWords(several, split), text) for text in ("rock—do ẞ", "sßs do— E\u0301", "CAF—“f")),
    ):
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


def refuses(automaton: WithoutWords, text: str) -> bool:
    """Whether forbidden words refuse a text, read byte by byte."""
    state = automaton.start()
    for byte in text.encode():
        if (state := automaton.step(state, byte)) is None:
            return True
    return not automaton.may_end(state)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("dog", "dog—"),
        ("dog", "“dog”"),
        ("dog", "dog…"),
        ("dog", "dog\u00a0sleeps"),
        ("straße", "STRASSE"),
        ("strasse", "die Straße"),
        ("éclair", "Un ÉCLAIR."),
        ("café", "cafe\u0301"),
        ("cafe\u0301", "CAFÉ"),
        ("việt", "Viê\u0323t"),
        ("собака", "Собака…"),
        ("ΣΟΦΟΣ", "σοφος σοφός ΣΟΦΟς!"),
        ("İzmir", "i\u0307zmir"),
        ("हिन्दी", "हिन्दी।"),
        ("don't", "Don’t go"),
        ("dog", "❤\ufe0fdog"),
    ],
)
def test_words_of_any_script_beside_any_sign(typed, text):
    assert refuses(WithoutWords(words_of(typed)), text)
    automaton = WithWords(groups_of(typed))
    state = automaton.start()
    for byte in text.encode():
        state = automaton.step(state, byte)
    assert automaton.may_end(state)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("dog", "dogé"),
        ("dog", "édog"),
        ("cafe", "café"),
        ("s", "ß"),
        ("हिन्द", "हिन्दी"),
        ("i", "İ"),
        ("a", "a\u0301"),
    ],
)
def test_a_part_of_a_word_of_any_script_is_another_word(typed, text):
    assert not refuses(WithoutWords(words_of(typed)), text)


def test_a_word_waits_for_the_rest_of_a_character():
    """The first byte of — is that of Ⰰ, which is a letter."""
    automaton = WithWords(groups_of("dog"))
    state = automaton.start()
    for byte in b"dog" + "Ⰰ".encode()[:1]:
        state = automaton.step(state, byte)
    assert automaton.may_end(state)  # what never becomes a character is no letter
    for rest, met in (("Ⰰ", False), ("—", True)):
        below = state
        for byte in rest.encode()[1:]:
            assert not below[0]
            below = automaton.step(below, byte)
        assert automaton.may_end(below) == met


MARKS = "".join(c for c in map(chr, range(0x110000)) if unicodedata.category(c)[0] == "M")
SIGNS = [
    *"dogDOGsSß ẞ—“”…'’é.ÉeEiIıİ_1²ﬁfΣσςçҐ가가각êⰀ狗ि𝒅𐐀🐕\xa0",
    "\u0301", "\u0323", "\u0307", "\ufe0f", "\u200d", "\u00ad",
]  # fmt: skip
LISTED = ["dog", "ss", "é", "fi", "İ", "sd", "ê\u0323", "σ", "가", "d'o", "og—d", "狗", "s", "i", "𐐀"]


def canonical(text: str) -> str:
    """Unicode's canonical caseless form."""
    plain = unicodedata.normalize("NFD", text.replace("’", "'"))
    return unicodedata.normalize("NFD", plain.casefold())


def whole_words(text: str) -> set[str]:
    r"""Which of LISTED stand in a text, by `str.casefold` and `\w` of `re`."""
    # a mark belongs to what it stands on
    lone = rf"(?<![\w{MARKS}])[{MARKS}]+"
    form = re.sub(lone, lambda marks: "\0" * len(marks[0]), canonical(text))
    spelt = {word: re.escape(canonical(word)) for word in LISTED}
    return {w for w, s in spelt.items() if re.search(rf"(?<![\w{MARKS}]){s}(?![\w{MARKS}])", form)}


def test_random_texts_are_read_as_python_reads_them():
    draw, found = random.Random(0), Counter()
    bans = {word: WithoutWords([word]) for word in LISTED}
    needs = WithWords([[word] for word in LISTED])
    for _ in range(4000):
        text = "".join(draw.choice([*SIGNS, *LISTED]) for _ in range(draw.randint(1, 7)))
        expected = whole_words(text)
        found.update(expected)
        state = needs.start()
        for byte in text.encode():
            state = needs.step(state, byte)
        met = state[0] | {needs.group_of[number] for number in needs.reader.whole(state[1])}
        assert {LISTED[number] for number in met} == expected, text
        word = draw.choice(LISTED)
        assert refuses(bans[word], text) == (word in expected), text
    assert len(found) == len(LISTED)
