"""Beam tree: which continuations are alive, where they split, what was dropped, and which leads by how much.

A fold over Propose, Verdict, Score and Commit; it serves any strategy that keeps several continuations, and
plain sampling as well. A node's place is fixed at birth by stable slots (`tree_rows.py`); only states change
later.
"""

import math
from itertools import takewhile

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, Score, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Tree
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.tree_rows import Slots
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

FAR = 10**6  # beyond any column
LABELLED = 8  # with more branches only the spine and the front are labelled
APART = 0.3  # rows between two finished hypotheses of one parent
# Parameters that say how many texts there are at a time; of a search under several plans, under each plan.
SIDE_BY_SIDE = ("num_beams", "num_return_sequences", "num_samples", "passages", "population")
DEAD_AT_BIRTH = ("pruned", "rejected", "never reached", "merged")


RANKED = {
    ScoreName.AUGMENTED_SUM,
    ScoreName.CONTRASTIVE,
    ScoreName.EXPECTED_UTILITY,
    ScoreName.LENGTH_PENALISED,
    ScoreName.MEAN_LOGPROB,
    ScoreName.PHI,
    ScoreName.SENTENCE_PREFIX,
    ScoreName.SHARE_OF_WEIGHT,
    ScoreName.SUM_LOGPROB,
}


@view("beam_tree", "Beam tree", reads=has(Rank, name=RANKED))
class BeamTree:
    """x counts generated tokens from 1 (0: the end of the prompt), y rows: one for each text at a time."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        side_by_side = max(int(header.number(name, 1)) or 1 for name in SIDE_BY_SIDE)
        self.rows = side_by_side * (int(header.number("num_plans", 1)) or 1)
        self.slots = Slots(self.rows, self.nodes.root, int(header.number("num_beam_groups", 1)) or 1)
        self.group: dict[int, int] = {self.nodes.root: 0}  # placed node -> its group
        self.level: dict[int, str] = {}  # node -> the group that a score names
        self.levels: list[str] = []  # names of the groups, in the order in which they were first heard of
        self.live: set[int] = {self.nodes.root}
        self.alive: set[int] = set()  # the live branches with all their nodes
        self.spine: set[int] = set()
        self.children: dict[int, list[int]] = {}  # placed children only
        # placed node -> (state, ended here, agreed by all, on the spine), as last sent
        self.looks: dict[int, tuple] = {}
        self.unsure: set[int] = set()  # nodes whose look may have changed in this step
        self.weight: dict[int, float] = {}
        self.finished: set[int] = set()
        self.judged: dict[int, str] = {}
        self.committed: dict[int, None] = {}  # in order
        self.farthest = 0
        self.front: list[int] = []  # nodes that carry a note
        self.best: int | None = None
        self.guides = 0

    def head(self) -> Layout:
        """Title, question, layout and the root, which is the end of the prompt."""
        root = self.nodes.root
        mark = scene.Node(
            f"n{root}",
            node=root,
            x=0,
            y=self.slots.row[root],
            state="prompt",
            text=self.nodes.text(root),
            priority=3,
            hover=["end of the prompt"],
        )
        expected = self.header.number("max_new_tokens", 0)
        several = self.rows > 1
        bands = [
            scene.Band(f"group{g}", role="panel", x0=-0.4, x1=FAR, y0=rows[0] - 0.5, y1=rows[-1] + 0.5)
            for g, rows in enumerate(self.slots.groups)
            if len(self.slots.groups) > 1
        ]
        return Tree(
            question="Which continuations are alive? Where did they split? What was dropped? Which leads?",
            ops=[*bands, mark],
            fold=True,
            rows=self.slots.height,
            note_title="rank, Σ log p, p" if several else "Σ log p, p",
            row=44 if self.rows <= LABELLED else 22,
            column=sizes.TOKEN,
            wide=56 if self.rows <= LABELLED else 44,
            left_narrow=4,
            right=116 if several else 64,
            right_narrow=72 if several else 48,
            **{"columns": int(expected) + 1} if expected else {},
            legend=[
                ["node:chosen", "●", "chosen", "best so far" if several else "chosen"],
                ["node:live", "○", "live", "live"],
                ["node:pruned", "✕", "pruned", "pruned"],
                ["node:finished", "■", "finished", "finished, with its score"],
                ["tick", "\\\\", "pruned", "dropped at once"],
                ["tick:rejected", "\\\\", "rejected", "ended by a constraint"],
                ["node:forced", "⚑", "forced", "inserted by hand"],
                ["band:panel", "▬", "line", "a group"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: new branches and ticks, finished hypotheses, changed states, notes at the
        front.
        """
        born, scores, verdicts, commits = self._sort(step)
        ops: list[Op] = []
        # A candidate with children in this step was part of a branch, however soon it died: it is a node.
        parents = {e.parent for e in born}
        dead = {n.node for n in born if verdicts.get(n.node, (None,))[0] in DEAD_AT_BIRTH}
        dropped = dead - parents
        survivors = [
            e for e in born if e.node not in dropped and verdicts.get(e.node, (None,))[0] != "finished"
        ]
        self._leave(born, verdicts)
        ops += self._place(survivors, born, scores, verdicts)
        ops += self._end(
            [e for e in born if verdicts.get(e.node, (None,))[0] == "finished"], born, scores, verdicts
        )
        ops += self._ticks([e for e in born if e.node in dropped], born, verdicts)
        self.unsure.update([*commits, *verdicts])
        self.committed.update(dict.fromkeys(commits))
        ops += self._restate(scores)
        ops += self._notes(scores)
        ops += self._guide(commits)
        ops += self._say(step, born, dropped)
        if born:
            ops.append(scene.Front(self.farthest, self.slots.height - 1))
        return ops

    # ---- what the step says ------------------------------------------------------------------
    def _sort(self, step) -> tuple:
        born, scores, verdicts, commits = [], {}, {}, []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    born.append(event)
                case Score():
                    if event.level:
                        self.level.setdefault(event.node, event.level)
                    if isinstance(event, Rank):
                        scores.setdefault(event.node, []).append(event)
                case Verdict():
                    verdicts[event.node] = (event.status, self.nodes.reason(event))
                    self.judged[event.node] = event.status
                case Commit():
                    commits += event.nodes
        return born, scores, verdicts, commits

    def _leave(self, born, verdicts) -> None:
        """Frees the rows of branches that ended in this step before new ones are placed."""
        for node, (status, _) in verdicts.items():
            if (
                status in STATES
                and status not in ("accepted", "resampled", "bonus", "forced")
                and node in self.live
            ):
                self.live.discard(node)
        for parent in {e.parent for e in born}:
            self.live.discard(parent)

    # ---- births ------------------------------------------------------------------------------
    def _place(self, survivors, born, scores, verdicts) -> list[Op]:
        """Assigns rows to survivors, level by level (a step may add a chain), best first."""
        ops = []
        for event in survivors:  # as they were proposed, so that the first group comes first
            self.group[event.node] = self._group(event)
        for column in sorted({self.nodes.position[e.node] for e in survivors}):
            level = [e for e in survivors if self.nodes.position[e.node] == column]
            level.sort(key=lambda e: self._order(e, scores))
            taken = {self.slots.row[n] for n in self.live}
            for group in sorted({self.group[e.node] for e in level}):
                mine = [e for e in level if self.group[e.node] == group]
                placed = self.slots.place([(e.node, e.parent) for e in mine], taken, group)
                for event in mine:
                    self.live.discard(event.parent)
                    self.live.add(event.node)
                    ops += self._birth(event, placed[event.node], born, scores, verdicts)
        return ops

    def _group(self, event) -> int:
        """The group that ranks a node, else its parent's."""
        level = self.level.get(event.node)
        if level is None:
            return self.group.get(event.parent, 0)
        if level not in self.levels:
            self.levels.append(level)
        return self.levels.index(level)

    def _order(self, event, scores) -> tuple:
        rank = next((s.rank for s in scores.get(event.node, []) if s.rank is not None), None)
        return (
            rank if rank is not None else math.inf,
            -self.nodes.total.get(event.node, -math.inf),
            event.slot,
        )

    def _birth(self, event, row: float, born, scores, verdicts) -> list[Op]:
        node, parent, nodes = event.node, event.parent, self.nodes
        self.slots.row[node] = row
        self.children.setdefault(parent, []).append(node)
        self.farthest = max(self.farthest, nodes.position[node])
        self.unsure.update((node, parent))
        weight = round(math.exp(min(0.0, event.logprob)), 4) if event.logprob is not None else 0.5
        self.weight[node] = weight
        state = "finished" if verdicts.get(node, (None,))[0] == "finished" else "live"
        self.looks[node] = (state, False, False, False)
        mark = scene.Node(
            f"n{node}",
            node=node,
            parent=f"n{parent}",
            x=nodes.position[node],
            y=row,
            state=state,
            weight=weight,
            text=nodes.text(node),
            quiet=self._quiet(node, self.looks[node]),
            hover=self._hover(event, born, scores, verdicts),
        )
        above = self.slots.row.get(parent, row)
        edge = scene.Edge(
            f"e{node}",
            x0=nodes.position[node] - 1,
            y0=above,
            x1=nodes.position[node],
            y1=row,
            state=state,
            weight=weight,
        )
        if self.rows > LABELLED and abs(above - row) > 2:
            edge.stub = True
        return [edge, mark]

    def _end(self, ended, born, scores, verdicts) -> list[Op]:
        """Finished hypotheses hang half a row below their parent, with their score; several of one parent are
        below each other.
        """
        ops = []
        for event in ended:
            self.finished.add(event.node)
            same = [e.node for e in ended if e.parent == event.parent]
            apart = APART if len(same) < 4 else 2 * APART / (len(same) - 1)
            down = 0.5 + apart * (same.index(event.node) - (len(same) - 1) / 2)
            below = round(self.slots.row.get(event.parent, 0) + self.slots.apart * down, 4)
            edge, mark = self._birth(event, below, born, scores, verdicts)
            total = next((s.total for s in scores.get(event.node, [])), None)
            if total is not None:
                mark.note, mark.note_priority = f"{total:.2f}".replace("-", "−"), 2
            mark.quiet = True  # its token is shown when it wins
            ops += [edge, mark]
        return ops

    def _ticks(self, dropped, born, verdicts) -> list[Op]:
        ops = []
        for parent in dict.fromkeys(e.parent for e in dropped):
            for index, event in enumerate(
                sorted((e for e in dropped if e.parent == parent), key=lambda e: e.slot)
            ):
                ops.append(
                    scene.Tick(
                        f"n{event.node}",
                        node=event.node,
                        parent=f"n{parent}",
                        index=index,
                        x=self.nodes.position.get(parent, 0),
                        y=self.slots.row.get(parent, 0),
                        state=STATES.get(verdicts[event.node][0], "pruned"),
                        hover=self._hover(event, born, {}, verdicts),
                    )
                )
        return ops

    def _hover(self, event, born, scores, verdicts) -> list[str]:
        nodes = self.nodes
        lines = [f"{nodes.text(event.node)}  p {probability(_p(event))}"]
        if event.node in nodes.total:
            lines.append(f"sum {nodes.total[event.node]:.2f}".replace("-", "−"))
        status, reason = verdicts.get(event.node, (None, None))
        rank = next((s.rank for s in scores.get(event.node, []) if s.rank is not None), None)
        if rank is not None:
            kept = sum(any(s.rank is not None for s in given) for given in scores.values())
            lines.append(f"rank {rank} of the {kept} kept" if self.rows > 1 else "chosen")
        elif status:
            lines.append(f"{status}: {reason}" if reason else status)
        others = [e for e in born if e.parent == event.parent and e.node != event.node]
        others.sort(key=lambda e: -(e.logprob if e.logprob is not None else -math.inf))
        words = [
            f"{nodes.text(e.node)} {probability(_p(e))} {verdicts.get(e.node, ('kept',))[0]}"
            for e in others[:4]
        ]
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        return [", ".join(lines)] + (["same parent: " + ", ".join(words) + more] if words else [])

    # ---- states ------------------------------------------------------------------------------
    def _restate(self, scores) -> list[Op]:
        """Colours follow from who lives, who leads and what is committed; only changes are sent."""
        ranked = [n for n, given in scores.items() for s in given if s.rank == 1 and n in self.looks]
        if ranked:
            self.best = ranked[-1]
        elif self.best not in self.live:
            self.best = max(
                self.live & self.looks.keys(), key=lambda n: self.nodes.total.get(n, -math.inf), default=None
            )
        if len(self.live) == 1 and self.rows == 1:
            self.best = next(iter(self.live))
        agreed = self.committed
        if agreed and not self.live:
            self.best = next(reversed(agreed))
        spine = agreed.keys() | set(self.nodes.path(self.best) if self.best is not None else [])
        alive = set()
        for node in self.live:
            alive.update(takewhile(lambda n: n in self.looks and n not in alive, self.nodes.upwards(node)))
        unsure = self.unsure | (spine ^ self.spine) | (alive ^ self.alive)
        self.spine, self.alive, self.unsure = spine, alive, set()
        ops: list[Op] = []
        for node in sorted(unsure & self.looks.keys()):
            before = self.looks[node]
            state = "chosen" if node in spine else "live" if node in alive else "pruned"
            if node in self.finished:
                state = "finished"
            elif state != "pruned" and self.judged.get(node) == "forced":
                state = "forced"
            look = (state, state == "pruned" and node not in self.children, node in agreed, node in spine)
            if look == before:
                continue
            self.looks[node] = look
            quiet = self._quiet(node, look)
            quiet = {"quiet": quiet} if quiet != self._quiet(node, before) else {}
            ops.append(scene.Change(f"n{node}", state=state, ended=look[1], **quiet))
            ops.append(scene.Change(f"e{node}", state="chosen" if node in spine else state, agreed=look[2]))
        return ops

    def _quiet(self, node: int, look: tuple) -> bool:
        return (self.rows > LABELLED or look[0] == "finished") and not look[3]

    def _notes(self, scores) -> list[Op]:
        """At the front of every live branch: rank, sum of log-probabilities, p of its last token."""
        ops = [scene.Change(f"n{n}", note=None, front=False) for n in self.front if n not in self.live]
        self.front = [n for n in sorted(self.live) if n in self.looks]
        for node in self.front:
            given = next((s for s in scores.get(node, []) if s.rank is not None), None)
            total = (
                given.total if given and given.name == ScoreName.SUM_LOGPROB else self.nodes.total.get(node)
            )
            words = [f"#{given.rank}"] if given and self.rows > 1 else []
            words += [f"{total:.1f}".replace("-", "−")] if total is not None else ["?"]
            more = {"note_more": f"{100 * self.weight[node]:.0f} %"}
            ops.append(scene.Change(f"n{node}", note="  ".join(words), front=True, **more))
        return ops

    def _say(self, step, born, dropped) -> list[Op]:
        """The step in one sentence, with the words of the cards."""
        if not born or self.best is None:
            return []
        caption = f"Step {step.index + 1}: {self.nodes.text(self.best)} leads"
        if self.rows == 1:
            caption = f"Step {step.index + 1}: {self.nodes.text(self.best)} chosen"
        if self.best in self.nodes.total:
            caption += f", sum {self.nodes.total[self.best]:.2f}".replace("-", "−")
        live = len(self.live & self.looks.keys())
        counts = [
            (live if self.rows > 1 else 0, "live"),
            (len(self.finished), "finished"),
            (len(dropped), "dropped at once"),
        ]
        return [scene.Say(caption + "".join(f", {n} {what}" for n, what in counts if n) + ".")]

    def _guide(self, commits) -> list[Op]:
        """The dotted line up to which all beams agree, while there are several."""
        if not commits or self.rows == 1:
            return []
        ops = [scene.Change(f"agree{self.guides}", gone=True)] if self.guides else []
        if not (self.live & self.looks.keys()) - set(self.committed):
            return ops  # it has ended: everything is committed
        self.guides += 1
        x = self.nodes.position.get(commits[-1], 0)
        return ops + [scene.Guide(f"agree{self.guides}", x=x, text="◂ all beams agree")]


def _p(event) -> float | None:
    return math.exp(min(0.0, event.logprob)) if event.logprob is not None else None
