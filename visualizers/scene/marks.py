"""Scenes: what a view hands to the player, and the helpers that views share.

A scene is a list of deltas, one per step: `{"step": n, "ops": [...]}`. An op is either the birth of a mark
(`{"id": "n7", "kind": "node", ...}`) or a change of some of its fields (`{"id": "n7", "set": {"state":
"pruned"}}`). The player remembers at which step each op came, so it can draw the scene at any step, in any
direction.

A view is a class with a `head()` (a dict, see below) and `feed(step) -> list[op]`, built from a trace's
header. It keeps only what it needs to place later marks; it never looks ahead. Coordinates are data units: x
is the token position (columns; 1 is the first new token), y is in rows, downwards. Colours, pixels, windows
and label collisions are the player's business.

Mark kinds and their fields. Every mark may have `hover` (at most two lines), `node` (the trace's node it
shows), `parent` (id of the mark before it on its path) and `panel`:
  node    x y state [text quiet note note_more note_priority weight front ended priority]
          a token in a tree: text above it, notes at its right; quiet: without text; front, ended:
          its branch stands here now, or has ended here
  edge    x0 y0 x1 y1 state [weight agreed stub turn bend]
          smooth connection; weight 0..1 is the probability; turn: columns after which it turns, straight
          until then; bend: columns in which it turns, straight after them
  tick    x y index [state]                          candidate dropped at birth: slanted stroke under (x, y)
  cell    x y w h state fill [text glyph priority weight tall]
          a box; fill: filled tint outline dashed dotted hatched none, or amount: grey by weight 0..1;
          tall: its height in pixels instead of h
  bar     x y0 y1 w rank                             a stacked grey bar piece; rank 0 is the darkest
  step    x y                                        one column of a step area (all of a view form one area)
  stem    x y0 y1                                    thin vertical line
  symbol  x y glyph role
          glyph: dot diamond triangle ring star square; role: ink soft amber or a state
  arc     x0 x1 y height weight strong               an arc over y; strong: as wide as its weight
  hook    x0 y0 x1 y1 strong                         a link below cells, from a row to a later one
  path    points role width [dash head]              a polyline in data units (the frontier); width in
          pixels; role: ink soft line link or a state; head: an arrow at its end
  label   x y text [face size role bold align priority w side dx dy stack rises]
          free text; face: mono sans; align: left center right; w: columns to fit into; side: left
          or right, in that gutter, where x is ignored; line: with side, its line of a list that
          never scrolls (none on a phone); stack: parts separated by two spaces go below each other
          where columns are narrow; rises: it may move up a line, uncut, where its column is too narrow
  band    x0 x1 role [y0 y1 columns parts]           a tinted area behind everything
          role: amber, panel or a state; without y0 and y1 it covers its panel; columns: gaps between them;
          parts: the node for which it stands where lanes part there
  guide   x [text]                                   a dotted vertical over its whole panel
  row     y0 y1 text [bold short right right_short right_bold rule label_y from to]
          a named row: text in the left gutter, right in the right one (short and right_short on a
          phone); a window that scrolls downwards starts at a row's top; from, to: its columns;
          folds_to: the last column that is still drawn when the row is folded
  chip    text state [plain position logprob entropy source]
          a token in the lane's running text (page text, in order of birth); plain: how it reads
          there, if that is not `text` with its signs as white space
  panel   y0 y1 [id share px ticks title grow rule heading lead short x_unit rows min_row
          columns]
          a horizontal panel with its own y scale: y0 at its top, y1 at its bottom; `px` fixed
          height (px_narrow: on a phone, as much more or less of the scale) or `share` of the
          rest; grow: rows of head's height, scrolled downwards; rule: a line below it; heading: a
          sentence at its top left (short: where that does not fit) after the bold lead; x_unit: what a
          column stands for at the ticks of x, 1 if left out; from_px: shown from this height of the
          picture on; px_low: its height in a low picture; rows: this many, which share its height;
          with less than `min_row` pixels each, they get `min_row` and scroll

Any mark may be hidden again by the change {"gone": true}; {"drawn": false} keeps it (counted, listed)
without drawing it; {"aside": true}, at birth, keeps it out of the strip that shows the whole run. `priority`
0 is never dropped; higher goes first. Two more ops: {"front": [x, y]} says where the action is at this step
(without it the front is the rightmost node, cell, bar or step, and the lowest), and {"say": sentence} puts
the step in words, for screen readers.

`head()` returns {"title", "question"} and, all optional ("NAME_narrow": the same on a phone):
  ops       marks that are there before the first step
  column, column_narrow, wide   least column width in pixels; wide: on wide screens
  widest    greatest column width in pixels
  tight     pixels to which columns are narrowed so that all fit
  tightest, tightest_narrow   the same, so that all up to the front fit
  steady    true: a front that goes back leaves the window as wide as it was, and it widens by thirds
  row_min, row_tall   heights to which rows are lowered or raised so that they fill their panel
  turn      columns after which edges turn: notes end before
  span      true: x is time, all of which is shown, from a zero that lanes share
  columns   most columns expected; "seen": as many as any step so far had; "panel": as many as panels say
  first     leftmost column
  fold      true: nodes left of the window are folded into a straight spine
  row, rows   least row height in pixels; most rows there can be (without it rows grow downwards and scroll)
  left, right, left_narrow, right_narrow   gutters in pixels
  clip      true: marks end at the right gutter
  overview  how the strip below shows the whole run: "rows" unchanged, "piled" marks of a column, "amount" of
            a step as a grey; without it there is no strip
  fold_rows   what becomes of rows above those that are open: "stairs" without text, or one row of what was
            "settled" there
  patched   true: words have a patch of background
  notes, note_title   "under": notes stand below their node's row, not beside it; what notes at the front are
  gap       pixels between panels
  by_depth  on a phone x is the marks' `depth`, in that many columns, and only the panel that grows is drawn
  axis      title of x; null: no ticks
  legend    entries [key, glyph, role, text], shown when a mark with that key, "kind:state" ("cell:rejected";
            kinds without state use their role or glyph), is in the window; role is a state, ink or soft
"""

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar

from decoders.explain.verdicts import reason_of
from decoders.trace.events import Commit, Propose, Step, Verdict
from decoders.trace.node_index import NodeIndex
from decoders.trace.number_format import many as many  # for all views
from decoders.trace.number_format import were as were
from decoders.trace.token_text import visible as visible
from decoders.trace.trace import Trace

Op = dict


MAX_DIGITS = 6  # of the number of a level
LARGEST = 1024  # number in a lane's parameters by which a view lays out its rows and columns


@dataclass
class Header:
    """What a view knows of a lane before its first step. `vocabulary` (token id -> bytes) grows with the
    trace.
    """

    prompt: list[int]
    vocabulary: dict[int, bytes]
    parameters: dict = field(default_factory=dict)
    title: str = ""
    lacks: list[str] = field(default_factory=list)  # see `Trace.lacks`

    @classmethod
    def of(cls, trace: Trace) -> "Header":
        """The header of a trace."""
        return cls(trace.prompt, trace.vocabulary, trace.shaping, trace.title, trace.lacks)

    def number(self, name: str, default: float) -> float:
        """A parameter that is a number from 0 on, at most LARGEST; `default` where it is none, since a trace
        from elsewhere may have anything there.
        """
        value = self.parameters.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return min(value, LARGEST)
        return default

    def word(self, name: str, default: str = "") -> str:
        """A parameter that is a text; `default` where it is none."""
        value = self.parameters.get(name)
        return value if isinstance(value, str) else default


def numbered(level: str | None, default: int) -> int:
    """The number at the end of a level, such as 3 of `layer 3`; `default` where there is none, since a trace
    from elsewhere may name its levels in any way.
    """
    last = (level or "").rpartition(" ")[2]
    return int(last) if last.isdecimal() and len(last) <= MAX_DIGITS else default


SOURCES = {  # of drafted tokens, where it is not a second model
    "store": "a store of texts",
    "pool": "a pool of n-grams",
    "recycled": "the target's earlier runners-up",
    "trigrams": "a table of trigrams",
    "prompt": "the text so far",
    "window": "what the previous forward drew here",
    "draft 2": "the second draft model",
    "draft 3": "the third draft model",
    "draft 4": "the fourth draft model",
}


class View(Protocol):
    """What a registered view has: its name and title, the head of its scene, and a step's ops."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, header: Header): ...

    def head(self) -> dict: ...

    def feed(self, step: Step) -> list[Op]: ...


VIEWS: dict[str, type[View]] = {}
V = TypeVar("V", bound=View)


def view(name: str, title: str) -> Callable[[type[V]], type[V]]:
    """Class decorator: registers a view under `name`, shown to people as `title`."""

    def register(cls: type[V]) -> type[V]:
        cls.name, cls.title = name, title
        VIEWS[name] = cls
        return cls

    return register


MONO = 0.602  # width of a character in a monospaced face, in em


def cells(text: str) -> int:
    """The width of a text in character cells: East Asian wide characters and emoji take two, combining marks
    none.
    """
    return sum(map(cells_of_character, text))


def cells_of_character(character: str) -> int:
    """As `cells`, of one character."""
    if unicodedata.category(character)[0] == "M":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def longest_prefix(text: str, room: int) -> str:
    """The longest beginning of a text that takes at most `room` cells."""
    width = 0
    for i, character in enumerate(text):
        width += cells_of_character(character)
        if width > room:
            return text[:i]
    return text


def fit(text: str, width: float, size: float) -> str:
    """As much of the token as fits into `width` pixels at `size`: all; without its leading ␣; cut with …; or
    nothing.
    """
    room = int(width / (MONO * size) + 1e-6)
    if cells(text) <= room:
        return text
    bare = text[1:] if text.startswith("␣") and len(text) > 1 else text
    if cells(bare) <= room:
        return bare
    kept = longest_prefix(bare, room - 1)
    return kept + "…" if cells(kept) >= 2 else ""


def probability(p: float | None) -> str:
    """`.63`, `1.00`, `.0352`: two places, more for small ones; `?` if unknown."""
    if p is None:
        return "?"
    places = min(6, math.ceil(-math.log10(p)) + 1) if 0 < p < 0.01 else 2
    return f"{p:.{places}f}".removeprefix("0") if p < 1 else f"{p:.2f}"


def source_lines(source: str | None) -> list[str]:
    """A line of a hover that says where a drafted token came from; none where a second model is meant."""
    return [f"drafted from {SOURCES[source]}"] if source in SOURCES else []


def three_digits(p: float | None) -> str:
    """Three significant digits, for ratios whose parts are printed too: dividing the printed parts gives the
    printed ratio.
    """
    if not p:
        return "?" if p is None else "0"
    places = max(0, 2 - math.floor(math.log10(p))) if 0 < p < 1 else 2
    written = f"{p:.{min(places, 8)}f}"
    return written.removeprefix("0") if written.startswith("0") else f"{p:.2f}"  # .9997 is written 1.00


def compared(verdict: Verdict) -> str:
    """The numbers of a test that are known: p, q, its acceptance probability if not p / q, u."""
    numbers = {
        "p": verdict.p,
        "q": verdict.q,
        "probability of acceptance": verdict.acceptance,
        "u": verdict.u,
    }
    return ", ".join(f"{name} {three_digits(value)}" for name, value in numbers.items() if value is not None)


# The palette's state for each verdict.
STATES = {
    "accepted": "accepted",
    "rejected": "rejected",
    "never reached": "unreached",
    "resampled": "resampled",
    "bonus": "bonus",
    "pruned": "pruned",
    "merged": "pruned",
    "finished": "finished",
    "forced": "forced",
}


def scroll_row(number: int, panel: str, y0: float, y1: float) -> Op:
    """A row without a name: a window that scrolls may begin there."""
    place = {"panel": panel, "y0": round(y0, 3), "y1": round(y1, 3)}
    return {"id": f"r{number}", "kind": "row", **place, "rule": False, "text": ""}


class Nodes(NodeIndex):
    """The trace's nodes as a view knows them: step by step, with their log-probabilities and their texts."""

    def __init__(self, header: Header):
        super().__init__(header.prompt)
        self.header = header
        # sum of log-probabilities from the prompt, where all are known
        self.total: dict[int, float] = {self.root: 0.0}

    def read(self, step: Step) -> tuple[list[Propose], dict[int, Verdict], list[int]]:
        """Adds a step's nodes; returns (its Propose events, node -> its last Verdict, committed nodes)."""
        born: list[Propose] = []
        verdicts: dict[int, Verdict] = {}
        commits: list[int] = []
        for event in step.events:
            match event:
                case Propose():
                    self.add(event)
                    born.append(event)
                case Verdict():
                    verdicts[event.node] = event
                case Commit():
                    commits += event.nodes
        return born, verdicts, commits

    def add(self, propose: Propose) -> None:
        """Adds the node of a Propose event."""
        super().add(propose)
        node, parent = propose.node, propose.parent
        if propose.logprob is not None and parent in self.total:
            self.total[node] = self.total[parent] + propose.logprob
        elif propose.given:  # sums begin where the lane's own work begins
            self.total[node] = 0.0

    def reason(self, verdict: Verdict | None) -> str | None:
        """Why a verdict is what it is, as a sentence; None if nothing says so."""
        return reason_of(verdict, self.header.vocabulary) if verdict else None

    def text(self, node: int) -> str:
        """The node's token as text."""
        token = self.token.get(node)
        return self.word(token) if token is not None else "?"

    def word(self, token: int) -> str:
        """A token as text."""
        return visible(self.header.vocabulary.get(token, b"?"))
