"""Turns the words and tokens that a user types for a processor into token ids.

Pieces are separated by commas. A word stands for itself with and without a leading space, since tokenizers
treat the two differently; in double quotes it is taken literally; `#123` is the token with that id.
"""

from collections.abc import Callable

from decoders.refusal import Refusal

Cut = Callable[[str], list[int]]  # text -> token ids, without special tokens added


def sequences(name: str, typed: str, cut: Cut | None, vocabulary: int) -> list[list[int]]:
    """The token sequences of all pieces of `typed`, each once. Raises Refusal with one sentence."""
    distinct: dict[tuple[int, ...], None] = {}
    for piece in pieces(name, typed):
        distinct.update(dict.fromkeys(forms(name, piece, cut, vocabulary)))
    return [list(sequence) for sequence in distinct]


def tokens(name: str, typed: str, cut: Cut | None, vocabulary: int) -> list[int]:
    """The single tokens of all pieces. Raises Refusal with one sentence for a piece without a single
    token.
    """
    distinct: dict[int, None] = {}
    for piece in pieces(name, typed):
        single = [sequence[0] for sequence in forms(name, piece, cut, vocabulary) if len(sequence) == 1]
        if not single:
            raise Refusal(f"{name} takes single tokens, and {piece!r} is several; put it into bad_words_ids.")
        distinct.update(dict.fromkeys(single))
    return list(distinct)


def biases(name: str, typed: str, cut: Cut | None, vocabulary: int) -> list[list]:
    """[[token ids], bias] for each `word: number`, as transformers takes them. Raises Refusal with one
    sentence.
    """
    by_sequence: dict[tuple[int, ...], float] = {}
    for piece in pieces(name, typed):
        word, colon, number = piece.rpartition(":")
        try:
            bias = float(number)
        except ValueError:
            bias = float("nan")
        if not colon or not word.strip() or abs(bias) > 1e4 or bias != bias:
            raise Refusal(
                f"{name} must be words with a number each, such as dog: 3, cat: -2.5, not {piece!r}."
            )
        for sequence in forms(name, word.strip(), cut, vocabulary):
            by_sequence[sequence] = bias
    return [[list(sequence), bias] for sequence, bias in by_sequence.items()]


def pieces(name: str, typed: str) -> list[str]:
    """The pieces between commas outside double quotes. Raises Refusal with one sentence if there is
    none.
    """
    parts, quoted = [""], False
    for char in typed:
        quoted ^= char == '"'
        if char == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    kept = [piece.strip() for piece in parts if piece.strip()]
    if not kept:
        raise Refusal(f"{name} has no words in it; type some, separated by commas, or leave it empty.")
    return kept


def forms(name: str, piece: str, cut: Cut | None, vocabulary: int) -> list[tuple[int, ...]]:
    """The token sequences that a piece stands for. Raises Refusal with one sentence."""
    if piece.startswith("#") and piece[1:].isdecimal():
        if int(piece[1:]) >= vocabulary:
            raise Refusal(f"{name}: there is no token {piece}; the last one is #{vocabulary - 1}.")
        return [(int(piece[1:]),)]
    if cut is None:
        raise Refusal(f"{name}: this model has no tokenizer; name tokens by number, such as #5.")
    exact = len(piece) > 2 and piece[0] == piece[-1] == '"'
    texts = [piece[1:-1]] if exact else [" " + piece, piece]
    return [sequence for sequence in dict.fromkeys(tuple(cut(text)) for text in texts) if sequence]
