"""Where a prompt may be cut: after its first or before its last line, or sentence if it has one line only."""

from collections.abc import Callable, Sequence

SENTENCE_ENDS = (b".", b"!", b"?")


def cuts(words: Sequence[bytes], ends: tuple[bytes, ...]) -> list[int]:
    """The places i where `words[i - 1]` ends, up to trailing spaces, with one of `ends`, and more words
    follow.
    """
    last = max((i for i, word in enumerate(words) if word.strip()), default=0)
    return [i for i, word in enumerate(words[:last], 1) if word.rstrip(b" \"'").endswith(ends)]


def last_part(tokens: Sequence[int], bytes_of: Callable[[int], bytes]) -> int:
    """Where a prompt's last line begins, or its last sentence if it has only one line; 0 if it is a single
    sentence.
    """
    words = [bytes_of(token) for token in tokens]
    return max(cuts(words, (b"\n",)) or cuts(words, SENTENCE_ENDS) or [0])


def first_part(tokens: Sequence[int], bytes_of: Callable[[int], bytes]) -> int:
    """Where a prompt's first line ends, or its first sentence if it has only one line; the prompt's length if
    it is a single sentence.
    """
    words = [bytes_of(token) for token in tokens]
    return min(cuts(words, (b"\n",)) or cuts(words, SENTENCE_ENDS) or [len(tokens)])


def head(tokens: Sequence[int], special: Sequence[int]) -> int:
    """How many special tokens the prompt begins with; every variant of it keeps them."""
    return next((i for i, token in enumerate(tokens) if token not in special), len(tokens))
