"""Tokens in sentences: their bytes as readable text."""

from decoders.trace.number_format import number


def visible(token: bytes) -> str:
    """A token made visible: leading space ␣, newline ↵, tab ⇥, control characters and split bytes as ‹hex›.

    >>> visible(b" the"), visible(b"\\n"), visible(b"\\xe2\\x96")
    ('␣the', '↵', '‹e2 96›')
    """
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return "‹" + token.hex(" ") + "›"
    shown = []
    for index, char in enumerate(text):
        if char == " ":
            shown.append("␣" if index == 0 or not text.strip() else char)
        elif char in "\n\r\t":
            shown.append({"\n": "↵", "\r": "␍", "\t": "⇥"}[char])
        elif not char.isprintable():
            shown.append("‹" + char.encode().hex(" ") + "›")
        else:
            shown.append(char)
    return "".join(shown)


def preference(who: str, token: bytes, preferred: float, p: float) -> str:
    """Why a token of probability `p` was rejected: `who` prefers `token`. The preferred token's probability
    is given only if it is larger than p; processors may prefer a token that is not.

    >>> preference("target", b" picked", 0.162, 0.05)
    'Rejected: the target prefers “␣picked” (.162).'
    """
    share = f" ({number(preferred)})" if preferred > p else ""
    return f"Rejected: the {who} prefers “{visible(token)}”{share}."
