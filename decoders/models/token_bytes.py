"""Token ids to bytes, for any Hugging Face tokenizer: byte-level BPE, SentencePiece, WordPiece, BPE with
marked ends of words, and whole words.

The bytes of consecutive tokens are what the tokenizer decodes them to after a word; at the very beginning of
a text it leaves out a space.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tokenizers import decoders

CONTROL = re.compile(r"<[|｜].*[|｜]>", re.DOTALL)  # the form of control tokens, which not all files mark
HEXADECIMAL = re.compile(r"<0x([0-9A-Fa-f]{2})>")
Spell = Callable[[str], bytes]


@cache
def _byte_of() -> dict[str, int]:
    """Printable character that represents a byte in byte-level BPE (GPT-2's table) -> that byte."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {chr(b): b for b in plain}
    others = (b for b in range(256) if b not in plain)
    table.update({chr(256 + i): b for i, b in enumerate(others)})
    return table


def byte_level(piece: str) -> bytes:
    """A piece of byte-level BPE; an added token with other characters stands for itself."""
    if all(c in _byte_of() for c in piece):
        return bytes(_byte_of()[c] for c in piece)
    return piece.encode()


def sentence_piece(piece: str) -> bytes:
    """A piece of SentencePiece, where ▁ is a space and <0x0A> a byte."""
    if hexadecimal := HEXADECIMAL.fullmatch(piece):
        return bytes.fromhex(hexadecimal[1])
    return piece.replace("▁", " ").encode()


def whole_word(piece: str) -> bytes:
    """A word of a vocabulary whose tokens are joined by spaces."""
    return f" {piece}".encode()


def word_piece(decoder: decoders.WordPiece) -> Spell:
    """The speller of pieces whose prefix (##) says that they continue a word."""
    return lambda piece: decoder.decode(["a", piece])[1:].encode()


def with_ends_of_words(suffix: str) -> Spell:
    """The speller of pieces whose suffix (</w>) says that a word ends."""
    return lambda piece: piece.replace(suffix, " ").encode()


def with_continuations(suffix: str) -> Spell:
    """The speller of pieces whose suffix (@@) says that a word goes on."""
    return lambda piece: (piece.removesuffix(suffix) if piece.endswith(suffix) else f"{piece} ").encode()


def speller(tokenizer: Any) -> Spell:
    """How the tokenizer's pieces are spelt. If the tokenizer has no backend of the library `tokenizers`, only
    the marks in its vocabulary tell.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        pieces = tokenizer.get_vocab()
        for suffix, spell in (("</w>", with_ends_of_words), ("@@", with_continuations)):
            if sum(piece.endswith(suffix) for piece in pieces) > len(pieces) / 10:
                return spell(suffix)
        return sentence_piece
    decoder = backend.decoder
    if "ByteLevel" in repr(decoder):
        return byte_level
    if isinstance(decoder, decoders.WordPiece):
        return word_piece(decoder)
    if isinstance(decoder, decoders.BPEDecoder):
        return with_ends_of_words(decoder.suffix)
    return whole_word if decoder is None else sentence_piece


class TokenBytes:
    """Maps a token id to its bytes when called; results are cached. `special`: the tokens that are not a
    piece of text.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.known: dict[int, bytes] = {}
        added = tokenizer.added_tokens_decoder.items()
        marked = (token for token, one in added if one.special or CONTROL.fullmatch(one.content))
        self.special = {*tokenizer.all_special_ids, *marked}
        self.spell = speller(tokenizer)

    def is_text(self, token: int) -> bool:
        """Whether a token is a piece of text: not a special token, and not an unused row."""
        return token not in self.special and self.tokenizer.convert_ids_to_tokens(token) is not None

    def __call__(self, token: int) -> bytes:
        text = self.known.get(token)
        if text is None:
            piece = self.tokenizer.convert_ids_to_tokens(token)
            unused = piece is None  # a row of the embedding that no token uses
            text = self.known[token] = f"<unused {token}>".encode() if unused else self.spell(piece)
        return text


def by_name(target) -> dict[str, int]:
    """Name -> token id; for a model without a tokenizer, the token's text -> token id."""
    if hasattr(target, "tokenizer"):
        return target.tokenizer.get_vocab()
    return {target.bytes_of(t).decode("utf-8", "replace"): t for t in range(target.engine.vocabulary)}
