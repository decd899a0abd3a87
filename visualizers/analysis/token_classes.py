"""Token classes: what kind of text a token is, by its bytes alone.

The one definition that pictures, tables and tests share.
"""

WORD_START = "word start"
CONTINUATION = "word continuation"
PUNCTUATION = "punctuation"
DIGIT = "digit"
SPACE = "whitespace"
OTHER = "other"
CLASSES = (WORD_START, CONTINUATION, PUNCTUATION, DIGIT, SPACE, OTHER)  # in the order they are listed


def token_class(token: bytes) -> str:
    """One of CLASSES, by the token's first character after its white space.

    word start: a letter after white space; word continuation: a letter at once (it may also begin a text or
    a quotation: the bytes do not tell); digit and punctuation (any printable ASCII sign, general punctuation
    such as dashes and quotation marks, and ideographic punctuation): with or without white space before it;
    whitespace: nothing else in it; other: the empty token, part of a character, and every other character.

    >>> [token_class(t) for t in (b" dog", b"ing", b" ,", b"7", b"\\n", b"\\xe2\\x96")]
    ['word start', 'word continuation', 'punctuation', 'digit', 'whitespace', 'other']
    """
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return OTHER
    bare = text.lstrip()
    if not bare:
        return SPACE if text else OTHER
    first = bare[0]
    if first.isalpha():
        return WORD_START if len(bare) < len(text) else CONTINUATION
    if first.isdigit():
        return DIGIT
    signs = "!" <= first <= "~" or "\u2010" <= first <= "\u205e" or "\u3001" <= first <= "\u303f"
    return PUNCTUATION if signs or first in "«»¡¿·" else OTHER
