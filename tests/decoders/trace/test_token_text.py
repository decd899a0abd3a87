"""Tokens in sentences: what a person reads, and which token the target preferred."""

from decoders.trace.token_text import preference, visible


def test_a_token_is_readable_and_on_one_line():
    shown = [visible(token) for token in (b" the", b"\n", b"a b", b"\t", b"\xe2\x96", b"\x1b")]
    assert shown == ["␣the", "↵", "a b", "⇥", "‹e2 96›", "‹1b›"]


def test_the_preferred_token_is_named_with_its_probability():
    assert preference("target", b" picked", 0.162, 0.05) == "Rejected: the target prefers “␣picked” (.162)."


def test_no_number_contradicts_the_sentence():
    """Processors may have made the less likely of the two the most likely."""
    assert preference("target", b" picked", 0.05, 0.162) == "Rejected: the target prefers “␣picked”."
