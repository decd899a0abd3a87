"""Where a prompt has a document, and where its sentences are. Knows plain text."""

import re

SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?]+[\"')\]]*(?=\s)|(?=\n)|$)")


def document_of(prompt: str) -> str:
    """What stands before the last blank line of a prompt; empty if it has none."""
    return prompt.rpartition("\n\n")[0]


def sentences_of(document: str) -> list[tuple[int, int]]:
    """Where its sentences begin and end: at a mark before white space, and at the ends of lines."""
    return [match.span() for match in SENTENCE.finditer(document)]
