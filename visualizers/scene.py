"""Scenes: what a view hands to the player, and the helpers that views share.

A scene is a list of deltas, one per step: `{"step": n, "ops": [...]}`. An op is either the birth of a mark
(`{"id": "n7", "kind": "node", ...}`) or a change of some of its fields (`{"id": "n7", "set": {"state": "pruned"}}`).
The player remembers at which step each op came, so it can draw the scene at any step, in any direction.

A view is a class with a `head()` (a dict, see below) and `feed(step) -> list[op]`, built from a trace's header. It keeps only
what it needs to place later marks; it never looks ahead. Coordinates are data units: x is the token position (columns; 1 is
the first new token), y is in rows, downwards. Colours, pixels, windows and label collisions are the player's business.

Mark kinds and their fields (every mark may have `hover`: a list of at most two lines, and `node`: the trace's node it shows):
  node    x y state [text bold size priority note weight front]  a token in a tree; text above it, note right of it
  edge    x0 y0 x1 y1 state [weight stub]                        smooth connection; weight 0..1 is the probability
  tick    x y index [state]                                      a candidate dropped at birth: slanted stroke under (x, y)
  cell    x y w h state fill [text glyph priority weight]        a box; fill: filled tint outline dashed dotted amount none
  bar     x y0 y1 w rank                                         a stacked grey bar piece; rank 0 is the darkest
  step    x y                                                    one column of a step area (all of a view join up)
  stem    x y0 y1                                                thin vertical line
  symbol  x y glyph role                                         glyph: dot diamond triangle ring star square; role: ink soft amber or a state
  arc     x0 x1 y weight strong                                  an arc above y
  hook    x0 y0 x1 y1 strong                                     a link below cells, from a row to a later one
  path    points role width                                      a polyline in data units (the frontier)
  label   x y text [face size role bold align priority w side]   free text; face: mono sans; align: left center right;
                                                                 w: columns to fit into; side left or right: in the gutter, x is ignored
  band    x0 x1 y0 y1 role                                       a tinted area behind everything; role: amber panel
  row     y0 y1 text [bold right right_bold rule]                a named row: text in the left gutter, right: in the right one;
                                                                 a window that scrolls downwards starts at a row's top
  chip    text state [position logprob entropy source node]      a token in the lane's running text (DOM, in order of birth)
  panel   y0 y1 [id share px ticks title grow rule]              a horizontal panel with its own y scale: y0 at its top, y1 at its
                                                                 bottom; marks name it in `panel`; `px` fixed height or `share`
                                                                 of the rest; grow: rows of head's height, scrolled downwards
Any mark may be hidden again by the change {"gone": true}; {"drawn": false} keeps it (counted, listed) without drawing it.
`priority` 0 is never dropped; higher goes first. A third op, {"front": [x, y]}, says where the action is at this step; without
it the front is the rightmost node, cell, bar or step, and the lowest.

`head()` returns {"title", "question"} and, all optional: "ops" (marks there before the first step), "column" and "wide" (least
column width in pixels, on narrow and on wide screens), "columns" (columns expected at most), "first" (leftmost column),
"row" (least row height in pixels), "rows" (how many there will ever be; without it rows grow downwards and scroll),
"left" and "right" (gutters in pixels), "axis" (title of x; null: no ticks), "legend": entries [key, glyph, role, text], shown when a mark with
that key, "kind:state" ("cell:rejected"; kinds without state use their role or glyph), is in the window; role is a state, ink or soft.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

Op = dict


@dataclass
class Header:
    """What a view knows of a lane before its first step. `vocabulary` (token id -> bytes) grows with the trace."""

    prompt: list[int]
    vocabulary: dict[int, bytes]
    parameters: dict = field(default_factory=dict)
    title: str = ""


def visible(token: bytes) -> str:
    """A token as it is shown: leading space as ␣, newline ↵, tab ⇥, control characters and split bytes as ‹hex›.

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


VIEWS: dict[str, type] = {}


def view(name: str, title: str) -> Callable[[type], type]:
    """Class decorator: registers a view under `name`, shown to people as `title`."""

    def register(cls: type) -> type:
        cls.name, cls.title = name, title
        VIEWS[name] = cls
        return cls

    return register
