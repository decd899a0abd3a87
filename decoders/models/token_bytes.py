"""Token ids to bytes, for any Hugging Face tokenizer, byte-level BPE or SentencePiece. Knows no models."""

import re
from functools import cache


@cache
def _byte_of() -> dict[str, int]:
    """Printable character that represents a byte in byte-level BPE (GPT-2's table) -> that byte."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {chr(b): b for b in plain}
    others = (b for b in range(256) if b not in plain)
    table.update({chr(256 + i): b for i, b in enumerate(others)})
    return table


class TokenBytes:
    """Maps a token id to its bytes when called; results are cached."""

    def __init__(self, tokenizer) -> None:
        self.tokenizer = tokenizer
        self.known: dict[int, bytes] = {}
        self.special = set(tokenizer.all_special_ids)
        decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
        self.byte_level = "ByteLevel" in repr(decoder)

    def is_text(self, token: int) -> bool:
        """Whether a token is a piece of text: not a special token, and not an unused row."""
        return token not in self.special and self.tokenizer.convert_ids_to_tokens(token) is not None

    def __call__(self, token: int) -> bytes:
        text = self.known.get(token)
        if text is None:
            text = self.known[token] = self._bytes(token)
        return text

    def _bytes(self, token: int) -> bytes:
        piece = self.tokenizer.convert_ids_to_tokens(token)
        if piece is None:  # a row of the embedding that no token uses
            return f"<unused {token}>".encode()
        if token in self.special:
            return piece.encode()
        if self.byte_level and all(c in _byte_of() for c in piece):
            return bytes(_byte_of()[c] for c in piece)
        if hexadecimal := re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", piece):
            return bytes.fromhex(hexadecimal[1])
        return piece.replace("▁", " ").encode()


def by_name(target) -> dict[str, int]:
    """Name -> token id; for a model without a tokenizer, the token's text -> token id."""
    if hasattr(target, "tokenizer"):
        return target.tokenizer.get_vocab()
    return {target.bytes_of(t).decode("utf-8", "replace"): t for t in range(target.engine.vocabulary)}
