"""Sentences of stories, and the problem of correcting one that was spoiled by rule."""

import random
import re

from explorer.tasks import Problem
from explorer.tasks.correction import spoil

SENTENCE = re.compile(r"[A-Z][a-zA-Z]*(?: [a-zA-Z]+,?){1,14} [a-zA-Z]+\.")


def story_sentences(stories: list[str]) -> list[str]:
    """Sentences of up to sixteen plain words, sorted."""
    return sorted({sentence for story in stories for sentence in SENTENCE.findall(story)})


def unread_sentences(stories: list[str], held: list[str]) -> list[str]:
    """Those of held-out stories that are in no other story."""
    return sorted(set(story_sentences(held)) - set(story_sentences(stories)))


def spoiled(right: str, rng: random.Random) -> Problem:
    """A sentence with errors, to be corrected."""
    return Problem("correct", f"correct: {spoil(right, rng)} =>", f" {right}")
