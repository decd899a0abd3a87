"""Fits tokens and labels into a mark: on one line, on several lines, and cut only as a last resort."""

from visualizers.scene.words import MONO, cells, fit, longest_prefix

LINE = 1.3  # height of a line relative to the size of its letters


def token_lines(text: str, width: float, size: float, lines: int = 1) -> str:
    """A token in at most so many lines of `width` pixels, with line feeds between them; what is longer ends
    in `…`. A line ends at a space where there is one, else within the word, as all of a token counts.
    """
    room, broken, rest = int(width / (MONO * size) + 1e-6), [], text
    while lines > len(broken) + 1 and cells(rest) > room and cells(rest.removeprefix("␣")) > room:
        end = len(longest_prefix(rest, room))
        if not end:
            break
        space = rest.rfind(" ", 1, end + 1)
        end = space + 1 if space > 0 else end
        broken.append(rest[:end].rstrip(" "))
        rest = rest[end:]
    return "\n".join([*broken, fit(rest, width, size)]).strip("\n")


def line_count(height: float, size: float) -> int:
    """The number of lines of this size that fit in a box of `height` pixels, at least one."""
    return max(1, int((height - 2) / (LINE * size)))


def cut_short(shown: str, whole: str) -> bool:
    """Whether `shown` is a cut form of `whole`."""
    return shown.endswith("…") and not whole.endswith("…")
