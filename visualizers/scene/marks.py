"""The marks of a scene, and what else a view says of a step.

A view answers each step with a list of ops: the birth of a mark (`Cell("n7", x=3, ...)`), a change of some
fields of a mark that exists (`Change("n7", state="pruned")`), where the action is (`Front`), or the step in
words (`Say`). The player remembers at which step each op came, so it can draw the scene at any step, in any
direction. `to_json` gives the form in which it, saved pages and the figures read them: an object with the
names of the fields, without those that are None.

Coordinates are data units: x is the token position (columns; 1 is the first new token), y is in rows,
downwards. A mark's place is fixed at birth. Colours, pixels, windows and label collisions are the player's
business. A `role` is a colour by name: ink, soft, line, link, amber or a state of the palette.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

Number = int | float
Point = list[Number]  # [x, y]


@dataclass(slots=True)
class Mark:
    """What every mark may have.

    panel: the id of the panel it lies in; the first one if it names none. hover: at most two lines. node: the
    trace's node that it shows. parent: the id of the mark before it on its path. priority: labels with a
    higher one win a collision; 0 is never dropped. drawn: False keeps the mark (counted, listed) without
    drawing it. aside: it stays out of the strip that shows the whole run. depth: its x on a phone, where the
    head says `by_depth`. gone, as a change: the mark is hidden again.
    """

    id: str
    _: KW_ONLY
    panel: str | None = None
    hover: list[str] | None = None
    node: int | None = None
    parent: str | None = None
    priority: int | None = None
    drawn: bool | None = None
    aside: bool | None = None
    depth: Number | None = None
    gone: bool | None = None
    kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """As the player reads it."""
        own = {"id": self.id, "kind": self.kind}
        for name in (*SHARED, *self.__slots__):
            if (value := getattr(self, name)) is not None:
                own[name] = value
        return own


SHARED = Mark.__slots__[1:]  # the fields of every mark, without its id


@dataclass(slots=True, kw_only=True)
class Node(Mark):
    """A token in a tree: its text above it, notes at its right.

    quiet: without text. note, note_more: a note and its longer end. bold: the note is. front, ended: the
    branch stands here now, or has ended here. weight: its probability.
    """

    kind = "node"
    x: Number
    y: Number
    state: str
    text: str | None = None
    quiet: bool | None = None
    note: str | None = None
    note_more: str | None = None
    note_priority: int | None = None
    bold: bool | None = None
    weight: float | None = None
    front: bool | None = None
    ended: bool | None = None


@dataclass(slots=True, kw_only=True)
class Edge(Mark):
    """A smooth connection. weight: the probability, 0 to 1. agreed: all living branches go through it. turn:
    columns after which it turns, straight until then; bend: columns in which it turns, straight after them.
    stub: only its end is drawn once it is pruned.
    """

    kind = "edge"
    x0: Number
    y0: Number
    x1: Number
    y1: Number
    state: str
    weight: float | None = None
    agreed: bool | None = None
    stub: bool | None = None
    turn: float | None = None
    bend: float | None = None


@dataclass(slots=True, kw_only=True)
class Tick(Mark):
    """A candidate that was dropped at birth: a slanted stroke under (x, y). index: which one of them."""

    kind = "tick"
    x: Number
    y: Number
    index: int
    state: str | None = None


@dataclass(slots=True, kw_only=True)
class Cell(Mark):
    """A box. fill: filled, tint, outline, dashed, dotted, hatched, none, or amount: grey by weight, 0 to 1.
    tall: its height in pixels instead of h. cell: [row, column] in the grid that it belongs to.
    """

    kind = "cell"
    x: Number
    y: Number
    w: Number
    h: Number
    fill: str
    state: str | None = None
    text: str | None = None
    glyph: str | None = None
    weight: Number | None = None
    tall: int | None = None
    cell: list[int] | None = None


@dataclass(slots=True, kw_only=True)
class Bar(Mark):
    """A piece of a stacked grey bar; rank 0 is the darkest."""

    kind = "bar"
    x: Number
    y0: Number
    y1: Number
    w: Number
    rank: int


@dataclass(slots=True, kw_only=True)
class Step(Mark):
    """One column of a step area; all of a view form one area."""

    kind = "step"
    x: Number
    y: Number


@dataclass(slots=True, kw_only=True)
class Stem(Mark):
    """A thin vertical line."""

    kind = "stem"
    x: Number
    y0: Number
    y1: Number


@dataclass(slots=True, kw_only=True)
class Symbol(Mark):
    """A sign. glyph: dot, diamond, triangle, ring, star, square. size: in pixels."""

    kind = "symbol"
    x: Number
    y: Number
    glyph: str
    role: str
    size: int | None = None


@dataclass(slots=True, kw_only=True)
class Arc(Mark):
    """An arc over y; strong: as wide as its weight. to: the place that a touch at its end shows."""

    kind = "arc"
    x0: Number
    x1: Number
    y: Number
    height: Number
    weight: float
    strong: bool
    to: Any = None


@dataclass(slots=True, kw_only=True)
class Hook(Mark):
    """A link below cells, from a row to a later one."""

    kind = "hook"
    x0: Number
    y0: Number
    x1: Number
    y1: Number
    strong: bool
    to: Any = None


@dataclass(slots=True, kw_only=True)
class Path(Mark):
    """A polyline. width: in pixels. head: an arrow at its end."""

    kind = "path"
    points: list[Point]
    role: str
    width: Number
    dash: str | None = None
    head: bool | None = None


@dataclass(slots=True, kw_only=True)
class Label(Mark):
    """Free text. face: mono or sans. align: left, center, right. w: columns to fit into.

    side: left or right, in that gutter, where x is ignored; line, with side: its line of a list that never
    scrolls (none on a phone). dx, dy: pixels from its place. stack: parts separated by two spaces go below
    each other where columns are narrow. rises: it may move up a line, uncut, where its column is too narrow.
    weight: decides between two labels of one priority.
    """

    kind = "label"
    text: str
    x: Number | None = None
    y: Number | None = None
    face: str | None = None
    size: int | None = None
    role: str | None = None
    bold: bool | None = None
    align: str | None = None
    w: Number | None = None
    h: Number | None = None
    side: str | None = None
    line: int | None = None
    dx: int | None = None
    dy: int | None = None
    stack: bool | None = None
    rises: bool | None = None
    weight: float | None = None


@dataclass(slots=True, kw_only=True)
class Band(Mark):
    """A tinted area behind everything; without y0 and y1 it covers its panel. columns: gaps between them.
    parts: the node for which it stands where lanes part there.
    """

    kind = "band"
    x0: Number
    x1: Number
    role: str
    y0: Number | None = None
    y1: Number | None = None
    columns: bool | None = None
    parts: int | None = None


@dataclass(slots=True, kw_only=True)
class Guide(Mark):
    """A dotted vertical over its whole panel."""

    kind = "guide"
    x: Number
    y: Number | None = None
    text: str | None = None


@dataclass(slots=True, kw_only=True)
class Row(Mark):
    """A named row: text in the left gutter, right in the right one (short and right_short on a phone), each
    after its bold part. A window that scrolls downwards starts at a row's top.

    rule: False leaves out the line below it. label_y: where its text stands. first, last: its columns.
    folds_to: the last column that is still drawn when the row is folded.
    """

    kind = "row"
    y0: Number
    y1: Number
    text: str
    bold: str | None = None
    short: str | None = None
    right: str | None = None
    right_short: str | None = None
    right_bold: str | None = None
    rule: bool | None = None
    label_y: Number | None = None
    first: int | None = None
    last: int | None = None
    folds_to: int | None = None


@dataclass(slots=True, kw_only=True)
class Chip(Mark):
    """A token in the lane's running text (page text, in order of birth). plain_text: how it reads there, if
    that is not `text` with its signs as white space. span: the name of what marks it. part: what it belongs
    to, such as reasoning. loop: its place in a loop: number of the loop, which copy, tokens of a copy.
    """

    kind = "chip"
    text: str
    state: str
    position: int | None = None
    logprob: float | None = None
    entropy: float | None = None
    source: str | None = None
    plain: str | None = None
    span: Any = None
    part: str | None = None
    loop: list[int] | None = None


@dataclass(slots=True, kw_only=True)
class Panel(Mark):
    """A horizontal panel with its own y scale: y0 at its top, y1 at its bottom.

    Height: px pixels (px_narrow: on a phone; px_low: in a low picture), as much more or less of the scale; or
    a share of what is left; or grow: rows of head's height, scrolled downwards; or rows: this many, which
    share its height, and get min_row pixels and scroll where each would have less. from_px: shown from this
    height of the picture on; below_px: only in a picture that is lower. ticks: [value, text] pairs. rule: a
    line below it. heading: a sentence at its top left, after the bold lead (short: where it does not fit).
    x_unit: what a column stands for at the ticks of x, 1 if left out. columns: how many it has, where the
    head's `columns` is "panel".
    """

    kind = "panel"
    y0: Number
    y1: Number
    share: Number | None = None
    px: int | None = None
    px_narrow: int | None = None
    px_low: int | None = None
    from_px: int | None = None
    below_px: int | None = None
    grow: bool | None = None
    rows: Number | None = None
    min_row: int | None = None
    ticks: list | None = None
    title: str | None = None
    rule: bool | None = None
    heading: str | None = None
    lead: str | None = None
    short: str | None = None
    x_unit: Number | None = None
    columns: int | None = None


KINDS = (
    Node,
    Edge,
    Tick,
    Cell,
    Bar,
    Step,
    Stem,
    Symbol,
    Arc,
    Hook,
    Path,
    Label,
    Band,
    Guide,
    Row,
    Chip,
    Panel,
)


class Change:
    """New values of some fields of a mark."""

    __slots__ = ("id", "fields")

    def __init__(self, id: str, /, **fields: Any):
        self.id, self.fields = id, fields

    def to_json(self) -> dict[str, Any]:
        """As the player reads it."""
        return {"id": self.id, "set": self.fields}


@dataclass(slots=True)
class Front:
    """Where the action is at this step; without it, that is the rightmost node, cell, bar or step, and the
    lowest.
    """

    x: Number
    y: Number

    def to_json(self) -> dict[str, Any]:
        """As the player reads it."""
        return {"front": [self.x, self.y]}


@dataclass(slots=True)
class Say:
    """The step in words, for screen readers."""

    sentence: str

    def to_json(self) -> dict[str, Any]:
        """As the player reads it."""
        return {"say": self.sentence}


@dataclass(slots=True)
class Moment:
    """Something happens at this step that is worth a stop, see decoders/trace/moments.py. node, position:
    where; size: of two of a kind, the larger is the more telling.
    """

    what: str  # the kind
    sentence: str
    node: int | None
    position: int
    size: float

    def to_json(self) -> dict[str, Any]:
        """As the player reads it."""
        where = {"node": self.node, "position": self.position, "size": round(self.size, 4)}
        return {"moment": {"kind": self.what, "text": self.sentence, **where}}


Op = Mark | Change | Front | Say | Moment
