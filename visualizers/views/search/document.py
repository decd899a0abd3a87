"""Document: the sentences of a prompt's document, where passages may begin, and where the text would end.

A fold over Rank ("sentence prefix": the mean of log p of a prefix, with the sentence that it stands for; "end
of text": the log-probability of an end after a sentence, with the passage's first sentence) and Commit.
"""

import math

from decoders.document import document_of, sentences_of
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

FLAG, FIRST = 1.0, 2.1  # columns of the flags, and of the first passage's curve
SHOWN = 4  # passages that have a curve
BAR = 0.9  # columns of a bar of probability 1


@view("document", "Document", reads=has(Rank, name=ScoreName.SENTENCE_PREFIX))
class Document:
    """Rows are sentences. Beside each: the flag of a prefix, P(end of text) after it for each passage."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        text = b"".join(header.vocabulary.get(token, b"") for token in header.prompt).decode(
            "utf-8", "replace"
        )
        document = document_of(text)
        self.sentences = [document[slice(*span)] for span in sentences_of(document)]
        self.curves: list[int] = []  # first sentences of passages, in the order in which they were read
        self.flags: dict[int, float] = {}
        self.prefix = 0  # tokens of the longest prefix
        self.columns = max(1, min(SHOWN, int(header.number("passages", 1))))

    def head(self) -> Layout:
        """Title, question, all sentences, and the legend."""
        words = {"role": "soft", "size": sizes.SMALL, "priority": 0, "panel": "names", "y": 0.6}
        names = [scene.Label("h0", x=FLAG, text="begins", w=1, **words)]
        names += [
            scene.Label(f"h{n + 1}", x=FIRST + n, text=f"P(end) {n + 1}", w=1, **words)
            for n in range(self.columns)
        ]
        ops: list[Op] = [
            heading(),
            scene.Panel("names", y0=0, y1=1, px=26, rule=True),
            scene.Panel("lines", y0=-0.1, y1=6, share=1, grow=True),
            *names,
        ]
        for row, sentence in enumerate(self.sentences):
            place = {"panel": "lines", "x": FIRST + self.columns - 0.35, "y": row + 0.56}
            look = {"role": "soft", "align": "left", "size": sizes.TEXT, "priority": 0}
            rows = {"panel": "lines", "y0": row, "y1": row + 1, "text": str(row + 1), "rule": False}
            ops.append(scene.Row(f"r{row}", **rows))
            ops.append(scene.Label(f"s{row}", text=sentence, **place, **look))
        return Table(
            question="Where may a passage begin? After which sentence would the model end it?",
            ops=ops,
            columns=4 + self.columns,
            row=sizes.BOX,
            column=sizes.PHRASE,
            column_narrow=58,
            left=40,
            left_narrow=28,
            legend=[
                ["cell:live", "⚑", "live", "a passage may begin here: mean of log p of its first tokens"],
                ["cell:prompt", "▭", "soft", "probability that the text ends after the sentence"],
                ["cell:chosen", "■", "chosen", "the passage ends here"],
            ],
            clip=None,
        )

    def feed(self, step) -> list[Op]:
        """Flags that are known now, the curve of a passage, or the output."""
        _, _, commits = self.nodes.read(step)
        ops: list[Op] = []
        ends = []
        for event in step.events:
            if not isinstance(event, Rank) or "sentence" not in event.parts:
                continue
            if event.name == ScoreName.SENTENCE_PREFIX:
                ops += self._flag(event)
            elif event.name == ScoreName.END_OF_TEXT:
                ends.append(event)
        starts = list(dict.fromkeys(int(e.parts["from"]) for e in ends))
        ops += [
            op for start in starts for op in self._curve(start, [e for e in ends if e.parts["from"] == start])
        ]
        lead = many(len(self.flags), "prefix", "prefixes")
        heading = f", distinguished by {many(self.prefix, 'token')}"
        if commits:
            heading += f"; {many(len(commits), 'token')} output"
        ops.append(scene.Change("heading", lead=lead, heading=heading + "."))
        say = f"{lead}{heading}; {many(len(self.curves), 'end')} read."
        return [*ops, scene.Front(1, max(self.flags, default=1)), scene.Say(say)]

    def _flag(self, event) -> list[Op]:
        row = int(event.parts["sentence"]) - 1
        value = f"{event.total:.1f}".replace("-", "−")
        self.prefix = max(self.prefix, self.nodes.position[event.node])
        hover = [f"sentence {row + 1}: mean of log p {value}, rank {event.rank} among the prefixes"]
        if row in self.flags:
            return [scene.Change(f"f{row}", text=value, hover=hover)]
        self.flags[row] = event.total
        place = {"panel": "lines", "x": FLAG, "y": row + 0.5, "w": 0.94, "h": 0.8, "node": event.node}
        look = {"state": "live", "fill": "tint", "glyph": "⚑", "text": value, "hover": hover}
        return [scene.Cell(f"f{row}", **place, **look)]

    def _curve(self, start: int, ends: list) -> list[Op]:
        """P(end of text) after each sentence of a passage, and the passage itself."""
        self.curves.append(start)
        number, ops = len(self.curves), []
        (best,) = [int(e.parts["sentence"]) for e in ends if e.rank == 1]
        for event in ends if number <= self.columns else []:
            row, p = int(event.parts["sentence"]) - 1, math.exp(min(0.0, event.total))
            width = round(max(0.02, BAR * p), 4)
            place = {
                "x": round(FIRST + number - 1 - BAR / 2 + width / 2, 4),
                "y": row + 0.5,
                "w": width,
                "h": 0.56,
            }
            look = (
                {"state": "chosen", "fill": "filled"}
                if event.rank == 1
                else {"state": "prompt", "fill": "outline"}
            )
            hover = [f"passage {number}, from sentence {start}: the text ends here with {probability(p)}"]
            ops.append(
                scene.Cell(f"e{number}.{row}", panel="lines", node=event.node, **place, **look, hover=hover)
            )
        inside = range(start - 1, best)
        return ops + [scene.Change(f"s{row}", role="ink", bold=True) for row in inside]
