"""Topics: the topic of each sentence of a text, and which topics were likely where it began.

A fold over Distribution (processed, of the level "topics": what was offered after a sentence), Propose,
Verdict, Rank (rank 1: the best text so far) and Commit. Columns are tokens of the best text so far, rewritten
where another overtakes it; a topic is a row, and a token lies in the row of its sentence. What is proposed
where a sentence begins is a topic.
"""

import math
from itertools import takewhile

from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Rank
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

LEVEL = "topics"
MAX_NAMED = 3  # of the topics that were likely at the start of a sentence, this many are shown
NOTHING = {
    "lead": "The prompt's sentence",
    "heading": " is written to its end before the first topic.",
    "short": " has no topic.",
}
QUESTION = "Which topic does each sentence have? Which topics were likely where it began?"


@view("topics", "Topics", reads=has(Distribution, level=LEVEL))
class Topics:
    """Above, a track through the rows of the topics; below, the tokens."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.offers: dict[int, dict[int, float]] = {}  # node before a sentence -> topic -> log-probability
        self.topics: set[int] = set()  # tokens that are known to be topics
        self.rows: dict[int, int] = {}  # topic -> its row, from the lowest up
        self.forced: dict[int, str] = {}  # topic's node -> why it was forced
        self.shown: list[int] = []  # the nodes of the columns
        self.born: set[int] = set()  # nodes whose marks were made
        self.final: set[int] = set()

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question=QUESTION,
            left=52,
            ops=[
                scene.Panel("heading", panel="heading", y0=0, y1=1, px=20, **NOTHING),
                scene.Panel("track", y0=-0.6, y1=0.6, share=1),
                token_line(),
            ],
            legend=[
                ["cell:chosen", "■", "chosen", "under this topic"],
                ["cell:live", "▣", "live", "the same, not final yet"],
                ["cell:amount", "▪", "soft", "how likely a topic was"],
                ["cell:forced", "⚑", "forced", "set by a plan"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: rows of new topics, and the best text as far as it has changed."""
        best, commits, ops = None, [], []
        for event in step.events:
            match event:
                case Distribution() if event.level == LEVEL:
                    self.offers[event.node] = dict(event.top)
                    best = event.node
                    ops += self._rows(sorted((topic for topic, _ in event.top[:MAX_NAMED]), reverse=True))
                case Propose():
                    self.nodes.add(event)
                    if event.parent in self.offers:
                        self.topics.add(event.token)
                        best = event.node
                        ops += self._rows([event.token])
                case Verdict() if event.status == "forced":
                    self.forced[event.node] = self.nodes.reason(event) or "forced"
                case Rank(rank=1):
                    best = event.node
                case Commit():
                    commits += event.nodes
        final = [node for node in commits if node in self.born]
        self.final.update(commits)
        ops += self._write(max((best, *commits[-1:]), key=self._length) if commits else best)
        ops += [op for node in final for op in self._settled(node)]
        if not ops:
            return []
        heading = self._heading()
        return [*ops, scene.Change("heading", **heading), scene.Say(heading["lead"] + heading["heading"])]

    def _length(self, node: int | None) -> int:
        return -1 if node is None else self.nodes.position[node]

    def _rows(self, topics: list[int]) -> list[Op]:
        """Rows for topics that occur for the first time, above the existing ones."""
        ops: list[Op] = []
        for topic in topics:
            if topic not in self.rows:
                at = self.rows[topic] = len(self.rows)
                place = {"panel": "track", "y0": -at - 0.5, "y1": -at + 0.5, "rule": False}
                ops.append(scene.Row(f"r{at}", **place, text=self._name(topic)))
        return [*ops, scene.Change("track", y0=0.4 - len(self.rows))] if ops else []

    def _name(self, topic: int) -> str:
        """`t2` for `<t2>`."""
        return self.nodes.word(topic).strip("<>")

    # ---- the text
    def _write(self, node: int | None) -> list[Op]:
        """The columns of the text that ends with this node; those of the text before it are hidden."""
        if node is None:
            return []
        path = self.nodes.path(node)
        same = next(
            (i for i, pair in enumerate(zip(path, self.shown, strict=False)) if pair[0] != pair[1]),
            min(len(path), len(self.shown)),
        )
        ops: list[Op] = []
        for old in self.shown[same:]:
            ops += [scene.Change(key, gone=True) for key in self._keys(old)]
        topic = next((n for n in reversed(path[:same]) if self._is_topic(n)), None)
        for x, new in enumerate(path[same:], same + 1):
            topic = new if self._is_topic(new) else topic
            if new in self.born:
                ops += [scene.Change(key, gone=False) for key in self._keys(new)]
            else:
                ops += self._column(new, x, topic)
        self.shown = path
        return ops

    def _is_topic(self, node: int) -> bool:
        return self.nodes.token[node] in self.topics

    def _keys(self, node: int) -> list[str]:
        """The ids of a column's marks."""
        keys = [f"t{node}"] + ([f"b{node}"] if self._topic_of(node) is not None else [])
        return keys + [f"o{node}-{topic}" for topic in self._others(node)]

    def _topic_of(self, node: int) -> int | None:
        """The nearest topic's node on the path to a node, itself included; None before the first."""
        way = takewhile(lambda n: n > self.nodes.root, self.nodes.upwards(node))
        return next((n for n in way if self._is_topic(n)), None)

    def _others(self, node: int) -> dict[int, float]:
        """The other most likely topics where this one was chosen."""
        offers = self.offers.get(self.nodes.parent[node], {}) if self._is_topic(node) else {}
        return {topic: p for topic, p in list(offers.items())[:MAX_NAMED] if topic != self.nodes.token[node]}

    def _column(self, node: int, x: int, topic: int | None) -> list[Op]:
        """A token, and its place on the track; at the start of a sentence also how likely each other topic
        was.
        """
        self.born.add(node)
        look = {"state": "chosen" if node in self.final else "live", "fill": "tint", "node": node}
        if topic is None:
            lines = [f"{self.nodes.text(node)}: the prompt's sentence, without a topic"]
            return [self._word(node, x, {**look, "hover": lines})]
        row = self.rows[self.nodes.token[topic]]
        place, name = {"panel": "track", "x": x, "y": -row}, self._name(self.nodes.token[topic])
        if node != topic:
            look["hover"] = [f"{self.nodes.text(node)}: in a sentence under {name}"]
            return [
                self._word(node, x, look),
                scene.Cell(f"b{node}", **place, w=1, h=0.34, **{**look, "fill": "filled"}),
            ]
        p = self.offers.get(self.nodes.parent[node], {}).get(self.nodes.token[node])
        why = self.forced.get(node, "the most likely topic after the best text")
        likely = "not among the most likely" if p is None else f"p {probability(math.exp(p))}"
        look["hover"] = [f"{name}: {likely} of all topics", why]
        if node in self.forced:
            look |= {"state": "forced", "fill": "outline", "glyph": "⚑"}
        text = "" if p is None else probability(math.exp(p))
        ops = [
            self._word(node, x, {**look, "glyph": ""}),
            scene.Cell(f"b{node}", **place, w=0.96, h=0.8, **look, text=text),
        ]
        for other, logprob in self._others(node).items():
            p = math.exp(logprob)
            place = {"panel": "track", "x": x, "y": -self.rows[other], "w": 0.96, "h": 0.8}
            look = {"state": "prompt", "fill": "amount", "weight": round(0.5 * p, 4)}
            lines = [f"{self._name(other)}: p {probability(p)} of all topics"]
            text = probability(p) if p >= 0.01 else ""
            ops.append(scene.Cell(f"o{node}-{other}", **place, **look, text=text, hover=lines, node=node))
        return ops

    def _word(self, node: int, x: int, look: dict) -> Op:
        text = self._name(self.nodes.token[node]) if self._is_topic(node) else self.nodes.text(node)
        return scene.Cell(f"t{node}", panel="tokens", x=x, y=0, w=0.96, h=1, **look, text=text)

    def _settled(self, node: int) -> list[Op]:
        """A column whose token is output now."""
        if node in self.forced:
            return []
        keys = [key for key in self._keys(node) if not key.startswith("o")]
        return [scene.Change(key, state="chosen") for key in keys]

    def _heading(self) -> dict:
        """The topics of the best text, in order."""
        topics = [node for node in self.shown if self._is_topic(node)]
        if not topics:
            return NOTHING
        names = [self._name(self.nodes.token[node]) for node in topics]
        forced = sum(node in self.forced for node in topics)
        rest = f": {many(len(topics), 'topic')}, {forced} set by a plan."
        return {"lead": " ".join(names[-12:]), "heading": rest, "short": rest}
