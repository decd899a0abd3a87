"""Rules: the typed text of a lane's constraint, with a mark where the output stands.

A fold over Commit and ConstraintPlace. Of the kinds of constraint it distinguishes only JSON, which is broken
into lines at its brackets.
"""

from decoders.trace.events import Commit
from decoders.trace.scores import ConstraintPlace
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Graph, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view

WIDE = 44  # characters of a line: as many as a phone has room for
SHORT = 36  # characters of a bracket that stays in one line
INDENT = 2
SIZE = 13
CHARACTER = 0.602 * SIZE  # pixels
QUOTED = 5  # places that the heading quotes
BREAKS = " ,|;"  # a line may end after these
ENDED = ": the text has ended"
UNKNOWN = "the output's place in the rules is not known for this text"


@view("rules", "Rules", reads=has(ConstraintPlace))
class Rules:
    """x counts characters of a line from 1, y lines of the typed text."""

    def __init__(self, header: Header):
        self.text = header.word("constraint_text")
        brackets = header.parameters.get("constraint") == "json_schema" and "\n" not in self.text.strip()
        self.known = False  # whether any place has been recorded
        self.lines = wrapped(bracketed(self.text) if brackets else plain(self.text), self.text)
        self.at = {
            offset: (column, row)
            for row, (indent, line) in enumerate(self.lines)
            for column, offset in enumerate(line, indent + 1)
        }
        # role and place -> ids of the marks that stand
        self.shown: dict[tuple[str, int, int], list[str]] = {}

    def head(self) -> Layout:
        """Title, question, layout and the text."""
        words = [
            scene.Label(f"w{row}", x=indent + 0.5, y=row + 0.5, text=self._shown(line), **LOOK)
            for row, (indent, line) in enumerate(self.lines)
        ]
        return Graph(
            question="Which rule does the output follow now? What may come next?",
            first=1,
            column=CHARACTER,
            widest=CHARACTER,
            columns=max((indent + len(line) for indent, line in self.lines), default=1),
            row=sizes.LINE,
            row_min=16,
            row_tall=22,
            left=12,
            ops=[
                heading(),
                scene.Panel("text", y0=-0.2, y1=len(self.lines), share=1, grow=True),
                scene.Row("whole", panel="text", y0=0, y1=len(self.lines), text="", rule=False),
                *words,
            ],
            legend=[
                ["band:amber", "■", "live", "may come next"],
                ["band:panel", "▭", "soft", "the rule around it"],
            ],
        )

    def _shown(self, line: list[int]) -> str:
        """A line, whose white space keeps its width."""
        return "".join("\N{NO-BREAK SPACE}" if self.text[at].isspace() else self.text[at] for at in line)

    def feed(self, step) -> list[Op]:
        """The ops of one step: where the newest token that was committed left the output."""
        committed = [node for event in step.events if isinstance(event, Commit) for node in event.nodes]
        if not committed:
            return []
        places = {place.node: place for place in step.of(ConstraintPlace)}
        newest = places.get(committed[-1])
        if newest is None:  # an end of text, or a text whose place is unknown
            over = {"lead": "over", "heading": ENDED, "short": ENDED}
            words = over if self.known else {"lead": "", "heading": UNKNOWN, "short": UNKNOWN}
            return [*self._marks(set(), step.index), scene.Change("heading", **words)]
        self.known = True
        awaited, around = [[(start, stop) for start, stop in of] for of in (newest.awaited, newest.around)]
        wanted = {("panel", *place) for place in around} | {("amber", *place) for place in awaited}
        ops = self._marks(wanted, step.index)
        quoted = " · ".join(shortened(self.text[start:stop]) for start, stop in awaited[:QUOTED])
        more = f" · and {len(awaited) - QUOTED} more" if len(awaited) > QUOTED else ""
        ends = "may end here" if newest.may_end else ""
        lead = "next" if awaited else "over"
        heading = ": " + ("; ".join(filter(None, (quoted + more, ends))) or "nothing more may come")
        ops.append(scene.Change("heading", lead=lead, heading=heading, short=heading))
        if awaited and (place := self.at.get(awaited[0][0])):
            ops.append(scene.Front(place[0], place[1] + 1))
        return [*ops, scene.Say(f"Step {step.index + 1}: {lead}{heading}.")]

    def _marks(self, wanted: set[tuple[str, int, int]], step: int) -> list[Op]:
        """Bands behind these parts of the text, one for each of their lines, and none behind others."""
        ops: list[Op] = []
        for gone in self.shown.keys() - wanted:
            ops += [scene.Change(name, gone=True) for name in self.shown.pop(gone)]
        for key in sorted(wanted - self.shown.keys(), reverse=True):  # rules before what stands in them
            role, start, stop = key
            rows: dict[int, list[int]] = {}
            for offset in range(start, stop):
                if offset in self.at and not self.text[offset].isspace():
                    column, row = self.at[offset]
                    rows.setdefault(row, []).append(column)
            self.shown[key] = []
            for row, columns in rows.items():
                name = f"{role}-{start}-{stop}-{row}-{step}"
                box = {"x0": min(columns) - 0.6, "x1": max(columns) + 0.6, "y0": row + 0.04, "y1": row + 0.96}
                ops.append(scene.Band(name, panel="text", role=role, **box))
                self.shown[key].append(name)
        return ops


LOOK = {"panel": "text", "face": "mono", "size": SIZE, "align": "left", "role": "ink", "priority": 0}
Line = tuple[int, list[int]]  # how far it is indented, and the places of its characters in the text


def shortened(text: str) -> str:
    """At most 24 characters of a piece of the text."""
    text = " ".join(text.split())
    return text if len(text) <= 24 else text[:23] + "…"


def plain(text: str) -> list[Line]:
    """The lines as they were typed."""
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append((0, list(range(start, start + len(line)))))
        start += len(line) + 1
    return lines


def brackets(text: str) -> dict[int, int]:
    """Where each bracket opens -> where it closes."""
    closing, open_, quoted = {}, [], False
    for at, sign in enumerate(text):
        if sign == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif not quoted and sign in "{[":
            open_.append(at)
        elif not quoted and sign in "}]" and open_:
            closing[open_.pop()] = at
    return closing


def bracketed(text: str) -> list[Line]:
    """A line for each member of a long bracket, further in than the bracket."""
    long = {at: end for at, end in brackets(text).items() if end - at > SHORT}
    ends = set(long.values())
    lines: list[Line] = [(0, [])]
    stack: list[int] = []  # of the brackets that are open, whether each is long
    quoted = False
    for at, sign in enumerate(text):
        if sign == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        if at in ends:
            stack.pop()
            lines.append((INDENT * sum(stack), []))
        elif not quoted and sign in "}]" and stack:
            stack.pop()
        if sign != " " or lines[-1][1]:
            lines[-1][1].append(at)
        if quoted:
            continue
        if sign in "{[":
            stack.append(at in long)
        breaks = at in long or (sign == "," and stack and stack[-1])
        if breaks:
            lines.append((INDENT * sum(stack), []))
    return [line for line in lines if line[1]]


def wrapped(lines: list[Line], text: str) -> list[Line]:
    """No line longer than WIDE: broken after a space or a separator, else anywhere; the continuation is
    indented further.
    """
    result: list[Line] = []
    for indent, line in lines:
        while indent + len(line) > WIDE:
            room = WIDE - indent
            breaks = [n for n in range(room // 2, room) if text[line[n]] in BREAKS]
            cut = breaks[-1] + 1 if breaks else room
            result.append((indent, line[:cut]))
            indent, line = min(indent + INDENT, WIDE // 2), line[cut:]
        result.append((indent, line))
    return result
