"""The texts of lanes as people read them: the text of each token, and which tokens another text lacks.

Knows tokens and their bytes, nothing of lanes, offers or pictures.
"""

import codecs
from difflib import SequenceMatcher

from decoders.trace.trace import Trace


def words(trace: Trace, tokens: list[int]) -> list[str]:
    """What each token adds to the text. A letter whose bytes several tokens share stands with the last of
    them; bytes that are no UTF-8 (yet) show as the replacement character.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    last = len(tokens) - 1
    return [decoder.decode(trace.vocabulary.get(token, b""), at == last) for at, token in enumerate(tokens)]


def others(own: list[int], reference: list[int]) -> list[bool]:
    """For each token of `own` whether it is beside what both texts have in common, in one order."""
    result = [True] * len(own)
    for _, at, size in SequenceMatcher(None, reference, own, autojunk=False).get_matching_blocks():
        result[at : at + size] = [False] * size
    return result
