"""Numbers in sentences: probabilities are rounded so that printed numbers agree."""


def number(x: float, digits: int = 3) -> str:
    """A probability with `digits` significant digits and no leading zero: .0352, 1, 3.1e-07."""
    text = f"{x:.{digits}g}"
    return text[1:] if text.startswith("0.") else text


def compared(p: float, q: float, u: float | None) -> tuple[str, str, str, str]:
    """p, q, p / q (if p < q) and the uniform number u as text, with as many digits as consistency needs:
    dividing the printed numbers gives the printed ratio, and the printed u lies on the correct side of it.
    """
    limit, shown_u = p / q, "" if u is None else number(u)
    for fine in range(3, 17):
        ratio = number(limit, fine)
        if u is None:
            break
        if (text := on_its_side(u, limit, ratio)) is not None:
            shown_u = text
            break
    for digits in range(fine, 17):
        shown_p, shown_q = number(p, digits), number(q, digits)
        if number(float(shown_p) / float(shown_q), fine) == ratio:
            break
    return shown_p, shown_q, ratio, shown_u


def on_its_side(u: float, limit: float, printed: str) -> str | None:
    """u with two or more digits, below the printed limit iff u is below the limit; None if no number of
    digits separates them.
    """
    for digits in range(2, 17):
        text = number(u, digits)
        if float(text) != float(printed) and (float(text) < float(printed)) == (u < limit):
            return text
    return None


def many(count: int, what: str, plural: str = "") -> str:
    """`1 way`, `1,200 ways`, `2 guesses`; `plural` for nouns whose plural is not formed by adding s."""
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def were(count: int, what: str, plural: str = "") -> str:
    """`1 step was`, `2 steps were`."""
    return f"{many(count, what, plural)} {'was' if count == 1 else 'were'}"
