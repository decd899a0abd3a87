"""The texts of lanes as people read them: the text of each token, and which tokens another text lacks."""

import codecs
from difflib import SequenceMatcher

from decoders.trace.trace import Trace


def words(trace: Trace, tokens: list[int]) -> list[str]:
    """What each token adds to the text. A character whose bytes are split over tokens belongs to the last of
    them; bytes that are not UTF-8 (yet) become the replacement character.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = len(tokens) - 1
    return [decoder.decode(trace.vocabulary.get(token, b""), at == last) for at, token in enumerate(tokens)]


def others(own: list[int], reference: list[int]) -> list[bool]:
    """For each token of `own` whether it is outside the matching blocks of both texts (difflib)."""
    result = [True] * len(own)
    for _, at, size in SequenceMatcher(None, reference, own, autojunk=False).get_matching_blocks():
        result[at : at + size] = [False] * size
    return result
