"""Finds the document in a prompt, and its sentences."""

import re

SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?]+[\"')\]]*(?=\s)|(?=\n)|$)")


def document_of(prompt: str) -> str:
    """The text before the last blank line of a prompt; empty if there is no blank line."""
    return prompt.rpartition("\n\n")[0]


def sentences_of(document: str) -> list[tuple[int, int]]:
    """(start, end) of each sentence; one ends at a punctuation mark before white space or at a line's end."""
    return [match.span() for match in SENTENCE.finditer(document)]
