"""Spans by delimiters: which token belongs to what, and how delimiters are typed and found."""

import pytest

from decoders.refusal import Refusal
from decoders.trace.spans import (
    DEFAULT,
    PARAMETER,
    Delimiters,
    Part,
    Spans,
    delimiters_of,
    of_template,
    parse,
    typed_for,
)

LETTERS = {Part.REASONING: "r", Part.ANSWER: "a", Part.TOOL_CALL: "t", None: "-"}


def read(*pieces: bytes, prompt: tuple[bytes, ...] = ()) -> Spans:
    spans = Spans(DEFAULT, prompt)
    for piece in pieces:
        spans.feed(piece)
    return spans


def letters(spans: Spans) -> str:
    """The part of each token, a letter each."""
    return "".join(LETTERS[part] for part in spans.parts)


def test_what_stands_between_delimiters_is_reasoning_and_what_follows_it_is_the_answer():
    assert letters(read(b"a", b"<think>", b"b", b"</think>", b"c")) == "-rrra"


def test_a_delimiter_may_be_cut_into_tokens_and_share_them():
    spans = Spans()
    assert [spans.feed(piece) for piece in (b"x<", b"th", b"ink>y")] == [[0], [1], [0, 1, 2]]
    assert letters(spans) == "rrr"


def test_a_tool_call_interrupts_an_answer():
    spans = read(b"<think>", b"</think>", b"a", b"<tool_call>", b"f()", b"</tool_call>", b"b")
    assert letters(spans) == "rrattta"


def test_without_reasoning_there_is_no_answer():
    assert letters(read(b"<tool_call>", b"f", b"</tool_call>", b"b")) == "ttt-"


def test_a_prompt_may_leave_a_span_open_and_its_earlier_turns_are_no_answer():
    spans = read(b"c", b"</think>", b"d", prompt=(b"<think>", b"</think>", b"old", b"<think>"))
    assert letters(spans) == "rr-rrra"


def test_tokens_of_reasoning_are_counted_without_delimiters():
    spans = read(b"<think>", b"a", b"b", b"</")
    assert (spans.open_spent, spans.spent) == (3, 3)  # nobody knows yet what </ becomes
    for piece in (b"think>", b"c", b"<think>", b"d"):
        spans.feed(piece)
    assert (spans.open_spent, spans.spent) == (1, 3)


def test_delimiters_as_they_are_typed():
    assert parse("<a> </a>, tool call: [ ]") == (
        Delimiters(Part.REASONING, "<a>", "</a>"),
        Delimiters(Part.TOOL_CALL, "[", "]"),
    )
    assert parse(", ".join(map(str, DEFAULT))) == DEFAULT


@pytest.mark.parametrize("typed", ["<a>", "answer: a b", "a b c", ", ".join(["a b"] * 9)])
def test_delimiters_that_are_none_are_refused(typed):
    with pytest.raises(Refusal):
        parse(typed)


def test_a_file_from_elsewhere_may_have_anything_for_delimiters():
    assert delimiters_of({PARAMETER: 3}) == delimiters_of({PARAMETER: "x"}) == delimiters_of({}) == DEFAULT


@pytest.mark.parametrize(
    ("template", "opens", "closes"),
    [
        ("[THINK]{{ x }}[/THINK]", "[THINK]", "[/THINK]"),
        ("<|START_THINKING|> <|END_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"),
        ("◁think▷ ◁/think▷", "◁think▷", "◁/think▷"),
        ("<seed:think></seed:think>", "<seed:think>", "</seed:think>"),
        ("<|tool_call_begin|> <|tool_call_end|>", "<|tool_call_begin|>", "<|tool_call_end|>"),
    ],
)
def test_a_chat_template_names_delimiters(template, opens, closes):
    [found] = of_template(template)
    assert (found.opens, found.closes) == (opens, closes)
    assert found.part is (Part.TOOL_CALL if "tool" in opens else Part.REASONING)


def test_a_template_adds_to_the_usual_delimiters():
    assert typed_for("<think></think>") == ""
    assert parse(typed_for("[THINK] [/THINK]")) == (
        *DEFAULT,
        Delimiters(Part.REASONING, "[THINK]", "[/THINK]"),
    )
