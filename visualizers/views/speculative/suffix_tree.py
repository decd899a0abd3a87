"""Suffix tree: which of the newest tokens were matched, what followed them how often, and what was drafted.

A fold over Table ("suffix score": the score of the draft after a match of so many tokens, of each tree;
"continuations": how often a run occurs, and each token after it), Propose, Verdict and Commit. Each step
shows its own round.
"""

from dataclasses import dataclass, field, replace

from decoders.explain.verdicts import status_in_words
from decoders.trace.events import Propose, Step, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import OTHERS, ScoreName, Table
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Tree, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability, source_lines

SPINE = 6  # columns of the newest tokens; the first stands for all matches that are longer
FEW = 3  # tokens beside the draft that are drawn below a node; others are one mark
ROOM = 1.35  # of the panel of scores, in the highest score
ABOVE = 0.16  # of a score over its bar, in the highest score
LOW = 6  # rows of the panel of a tree that is lower, so that it is not far below the scores
TREES = {"prompt": ("this text", -0.19, 0), "store": ("the store", 0.19, 2)}  # words, place, grey
BAR = 0.36
ORDER = ["accepted", "resampled", "bonus", "chosen", "rejected", "unreached", "live", "pruned"]


@dataclass
class Place:
    """A token below the match: its text and state, its count, and its share of the token before it."""

    key: str
    text: str
    state: str
    count: float | None
    share: float
    hover: list[str]
    node: int | None = None
    below: list["Place"] = field(default_factory=list)


@view("suffix_tree", "Suffix tree", reads=has(Table, name=ScoreName.SUFFIX_SCORE))
class SuffixTree:
    """x counts tokens: up to SPINE newest ones, then the tree below the match; y separates its branches."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.shown: list[str] = []  # ids of the marks of the round on show
        self.rounds = 0

    def head(self) -> Layout:
        """Title, question, layout and legend; every round brings its own panels."""
        return Tree(
            question="How long a match was used? What followed it, how often, and what was drafted?",
            ops=[heading()],
            first=1,
            column=sizes.WORD,
            column_narrow=50,
            tight=44,
            tightest=30,
            widest=120,
            columns="panel",
            row_tall=60,
            gap=sizes.GAP,
            left=12,
            right=70,
            right_narrow=40,
            axis=None,
            notes="under",
            patched=True,
            legend=[
                [
                    "node:chosen",
                    "●",
                    "chosen",
                    "matched; a number: how often it occurs · share of the one before",
                ],
                ["node:accepted", "●", "accepted", "drafted and accepted"],
                ["node:rejected", "✕", "rejected", "drafted and rejected"],
                ["node:unreached", "○", "unreached", "drafted, never reached"],
                ["node:resampled", "◆", "resampled", "the target's own instead"],
                ["node:bonus", "★", "bonus", "bonus"],
                ["node:pruned", "·", "pruned", "also followed, not drafted (in front: not matched)"],
                [
                    "bar",
                    "▂",
                    "soft",
                    "score of the draft if the match begins here (left: in this text; right: in the store)",
                ],
            ],
            overview=None,
        )

    def feed(self, step: Step) -> list[Op]:
        """Hides the previous round and draws this one."""
        born, verdicts, commits = self.nodes.read(step)
        tables = step.of(Table)
        scores = [t for t in tables if t.name == ScoreName.SUFFIX_SCORE and t.level in TREES]
        if not scores:
            return []
        self.rounds += 1
        counts = {t.node: t for t in tables if t.name == ScoreName.CONTINUATIONS}
        root, chosen = scores[0].node, next((t for t in scores if t.chosen), None)
        spine = self._spine(root, scores)
        tree = self._tree(root, born, verdicts, commits, counts)
        rows, height = layout(tree)
        deep = max((depth for depth, _ in rows.values()), default=0)
        first, panel = len(spine), f"t{self.rounds}"
        low = max(height, LOW)
        size = {"y0": -0.75, "y1": low, "rows": low + 0.75, "min_row": 40}
        below = [
            *self._matched(spine, chosen, counts),
            *(m for p in flat(tree) for m in self._place(p, rows, first)),
        ]
        marks: list[Op] = [
            *self._scores(scores, chosen, first),
            scene.Panel(panel, **size, share=1, columns=first + deep),
            *(replace(mark, panel=panel) for mark in below),
        ]
        hidden = [scene.Change(key, gone=True) for key in self.shown]
        self.shown = [mark.id for mark in marks]
        kept = [n for n in commits if n in verdicts and verdicts[n].status == "accepted"]
        lead, rest, short = self._say(scores, chosen, counts.get(root), born, kept)
        heading = scene.Change("heading", lead=lead, heading=rest, short=short)
        return [*hidden, heading, *marks, scene.Front(first + len(kept) + 1, 0), scene.Say(lead + rest)]

    # ---- what is drawn -----------------------------------------------------------------------
    def _spine(self, root: int, scores: list[Table]) -> list[int]:
        """The newest tokens that occurred in one of the trees, oldest first; at least one."""
        longest = max([1, *(m for table in scores for m in table.by_number)])
        spine = [root]
        while len(spine) < min(longest, SPINE) and (above := self.nodes.parent.get(spine[-1])) is not None:
            spine.append(above)
        return spine[::-1]

    def _tree(
        self,
        root: int,
        born: list[Propose],
        verdicts: dict[int, Verdict],
        commits: list[int],
        counts: dict[int, Table],
    ) -> list[Place]:
        """The places below the match."""
        here: dict[int, list[int]] = {}
        for event in born:
            here.setdefault(event.parent, []).append(event.node)
        sources = {event.node: event.source for event in born}
        open_nodes = {root, *commits}

        def below(node: int) -> list[Place]:
            table = counts.get(node)
            listed = {token: row[0] for token, row in table.by_number.items()} if table else {}
            total = table.total if table else 0
            places = []
            for child in here.get(node, []):
                count = listed.pop(self.nodes.token[child], None)
                verdict = verdicts.get(child)
                state = STATES[verdict.status] if verdict else "chosen" if child in commits else "live"
                hover = self._hover(child, count, total, verdict, sources[child])
                share = (count or 0) / total if total else 0.0
                text = self.nodes.text(child)
                places.append(Place(f"n{child}", text, state, count, share, hover, child, below(child)))
            if node in open_nodes and table:
                places += self._beside(node, listed, total)
            return sorted(places, key=lambda p: (p.node not in commits, ORDER.index(p.state), -p.share))

        return below(root)

    def _beside(self, node: int, listed: dict[int, float], total: float) -> list[Place]:
        """What else followed a node: the most frequent tokens, and one place for all others."""
        others = listed.pop(OTHERS, 0)
        tokens = sorted(listed, key=lambda token: -listed[token])
        places = []
        for token in tokens[:FEW]:
            count, text = listed[token], self.nodes.word(token)
            hover = [f"{text}  followed {count:.0f} of {total:.0f} times, not drafted"]
            places.append(
                Place(f"o{self.rounds}.{node}.{token}", text, "pruned", count, count / total, hover)
            )
        if rest := sum(listed[token] for token in tokens[FEW:]) + others:
            hover = [f"other tokens followed {rest:.0f} of {total:.0f} times, not drafted"]
            key = f"o{self.rounds}.{node}.rest"
            places.append(Place(key, "others", "pruned", rest, rest / total, hover))
        return places

    def _hover(
        self, node: int, count: float | None, total: float, verdict: Verdict | None, source: str
    ) -> list[str]:
        word, status = self.nodes.text(node), f"  {status_in_words(verdict.status)}" if verdict else ""
        often = "" if not total else "; it never followed here" if count is None else followed(count, total)
        reason = self.nodes.reason(verdict) if verdict else None
        return [f"{word}{status}{often}", *([reason] if reason else []), *source_lines(source)][:2]

    # ---- marks -------------------------------------------------------------------------------
    def _scores(self, scores: list[Table], chosen: Table | None, width: int) -> list[Op]:
        """A panel with the score of each length of match, over the token with which such a match begins."""
        top = max([0.5, *(table.total for table in scores)])
        name = f"s{self.rounds}"
        marks: list[Op] = [scene.Panel(name, y0=round(ROOM * top, 3), y1=0, px=74)]
        for table in scores:
            words, shift, rank = TREES[table.level]
            best: dict[int, tuple[float, int]] = {}  # column -> score and length
            for m, (score, *_) in table.by_number.items():
                column = max(1, width - m + 1)
                best[column] = max(best.get(column, (-1.0, 0)), (score, m))
            if table is chosen:
                column = max(1, width - table.chosen + 1)
                best[column] = (table.total, table.chosen)
            for column, (score, m) in best.items():
                place = {"panel": name, "x": round(column + shift, 3)}
                hover = [f"{words}: a match of {many(m, 'token')} gives score {score:.2f}"]
                bar = {"y0": 0, "y1": round(score, 4), "w": BAR, "rank": rank, "hover": hover}
                key = f"{name}.{table.level}.{column}"
                marks.append(scene.Bar(key, **place, **bar))
                if table is chosen and m == table.chosen:
                    label = {"y": round(score + ABOVE * top, 4), "text": f"{score:.2f}", "bold": True}
                    look = {"role": "ink", "align": "center", "priority": 0}
                    marks.append(scene.Label(f"{key}.v", **place, **label, **look))
        return marks

    def _matched(self, spine: list[int], chosen: Table | None, counts: dict[int, Table]) -> list[Op]:
        """The newest tokens: those of the match, and older ones."""
        marks: list[Op] = []
        used = chosen.chosen if chosen else 0
        for column, node in enumerate(spine, 1):
            m = len(spine) - column + 1
            more = column == 1 and used > m
            state = "chosen" if m <= used or m == 1 else "pruned"
            text = self.nodes.text(node)
            hover = [
                f"{self.nodes.text(node)}  " + ("matched" if m <= used else "not part of the match"),
                *([f"the match begins {many(used - m, 'token')} earlier"] if more else []),
            ]
            place = {"x": column, "y": 0, "node": node, "state": state, "text": text, "hover": hover}
            if more:
                place |= {"note": f"{used - m} more", "note_priority": 1}
            if m == 1 and node in counts:
                place |= {"note": f"{counts[node].total:.0f}", "note_priority": 5}
            marks.append(scene.Node(f"m{self.rounds}.{column}", **place, priority=1))
            if column > 1:
                ends = {"x0": column - 1, "y0": 0, "x1": column, "y1": 0, "weight": 0.7}
                look = {"state": "chosen" if m < used else "pruned"}
                marks.append(scene.Edge(f"m{self.rounds}.{column}e", **ends, **look))
        return marks

    def _place(self, place: Place, rows: dict[str, tuple[int, float]], first: int) -> list[Op]:
        depth, y = rows[place.key]
        x, up = first + depth, rows[place.key + "^"]
        note = "" if place.count is None else f"{place.count:.0f}"
        if place.count is not None and place.share < 1:
            note = f"{place.count:.0f} · {probability(place.share)}"
        where = {"x": x, "y": y, "node": place.node, "state": place.state, "hover": place.hover}
        text = {"text": place.text, "bold": place.state not in ("unreached", "pruned"), "note": note}
        first = 4 if place.state == "pruned" else 1
        mark = scene.Node(place.key, **where, **text, priority=first, note_priority=5)
        ends = {"x0": x - 1, "y0": up[1], "x1": x, "y1": y, "state": place.state, "weight": place.share}
        return [scene.Edge(f"e{place.key}", **ends), mark]

    # ---- words -------------------------------------------------------------------------------
    def _say(
        self,
        scores: list[Table],
        chosen: Table | None,
        run: Table | None,
        born: list[Propose],
        kept: list[int],
    ) -> tuple[str, str, str]:
        """The round in a sentence: its beginning, its end, and a shorter end."""
        lead = f"Round {self.rounds}"
        if chosen is None:
            longest = max([0, *(m for table in scores for m in table.by_number)])
            why = (
                ": no draft; nothing follows often enough."
                if longest
                else ": no draft; the last token is new."
            )
            return lead, why, why
        m, times, words = chosen.chosen, int(run.total) if run else 0, TREES[chosen.level][0]
        drafted, passed = sum(event.source in TREES for event in born), len(kept)
        matched = "the last token occurs" if m == 1 else f"the last {m} tokens occur"
        often = "once" if times == 1 else f"{times:,} times"
        rest = f"{drafted} drafted, {chosen.total:.2f} expected, {passed} accepted."
        short = f": {many(m, 'token')}, {times} × in {words}; {passed} of {drafted} accepted."
        return lead, f": {matched} {often} in {words}; {rest}", short


def followed(count: float, total: float) -> str:
    """How often a token followed a run."""
    return f"; followed {count:.0f} of {total:.0f} times"


def flat(places: list[Place]) -> list[Place]:
    """All places, parents first."""
    return [one for place in places for one in (place, *flat(place.below))]


def layout(tree: list[Place]) -> tuple[dict[str, tuple[int, float]], float]:
    """(depth, row) of each place, and under its key with ^ of its parent; the first child has its parent's
    row, every other a row of its own. And the number of rows.
    """
    rows: dict[str, tuple[int, float]] = {}
    free = 1.0

    def put(places: list[Place], depth: int, above: float) -> None:
        nonlocal free
        for index, place in enumerate(places):
            y = above if index == 0 else free
            free = max(free, y + 1)
            rows[place.key], rows[place.key + "^"] = (depth, y), (depth - 1, above)
            put(place.below, depth + 1, y)

    put(tree, 1, 0.0)
    return rows, free
