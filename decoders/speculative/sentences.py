"""Numbers in sentences: probabilities printed so that what is printed agrees with itself. Knows no method."""


def number(x: float, digits: int = 3) -> str:
    """A probability with `digits` significant digits and no leading zero: .0352, 1, 3.1e-07."""
    text = f"{x:.{digits}g}"
    return text[1:] if text.startswith("0.") else text


def ratio(p: float, q: float) -> tuple[str, str, str]:
    """p, q and p / q as text, with as many digits (three or more) as it takes for the printed division to be right."""
    wanted = number(p / q)
    for digits in range(3, 9):
        shown_p, shown_q = number(p, digits), number(q, digits)
        if number(float(shown_p) / float(shown_q)) == wanted:
            break
    return shown_p, shown_q, wanted


def draw(u: float, limit: float) -> str:
    """The draw as text, with enough digits (two or more) to be seen on its side of the printed limit."""
    for digits in range(2, 17):
        text = number(u, digits)
        if (float(text) < float(number(limit))) == (u < limit):
            break
    return text
