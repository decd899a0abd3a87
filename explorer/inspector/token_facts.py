"""What a trace records about one token, for the inspector: the distributions, the verdicts and their reasons.

A fold over the events; numbers are those of the trace, and derived ones are marked as such. Returns plain
data, which a saved page can hold.
"""

import json
import math
from collections.abc import Mapping
from itertools import islice

from decoders.explain.verdicts import reason_of
from decoders.refusal import Refusal
from decoders.trace.events import Cell, Commit, Depend, Distribution, Propose, Verdict, event_to_json
from decoders.trace.node_index import NodeIndex
from decoders.trace.scores import AutomatonState, ConstraintPlace, Rank, Score, ScoreName
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from explorer.inspector.verification_tests import attempts
from visualizers.analysis import distribution_stages
from visualizers.scene.verdict_marks import STATES

ROWS = 9  # tokens listed per distribution; the rest is one sum
PATH = 12  # tokens shown of the text before the node
MAX_EVENTS = 24  # raw events shown per node


def inspect(trace: Trace, node: int) -> dict:
    """Facts of `node`, see `Facts.of`. Raises Refusal with one sentence if the trace has no such node."""
    return Facts(trace).of(node)


def inspect_cell(trace: Trace, position: int, iteration: int) -> dict:
    """Facts of the token at a position in one iteration of a parallel decoder, see `Facts.of_cell`."""
    return Facts(trace).of_cell(position, iteration)


class Facts:
    """One pass over a trace, from which the facts of every node are taken."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.nodes = NodeIndex(trace.prompt)
        self.births: dict[int, tuple[int, Propose]] = {}
        self.verdicts: dict[int, list[tuple[int, Verdict]]] = {}
        self.scores: dict[int, list[tuple[int, Score]]] = {}
        self.offers: dict[int, dict[tuple, Distribution]] = {}  # node -> what was on offer after it
        self.committed: dict[int, float | None] = {}  # node -> its log-probability under the target
        self.events: dict[int, list[tuple[int, object]]] = {}
        self.cells: dict[int, list[Cell]] = {}  # position -> its tokens, iteration by iteration
        self.waits: dict[int, list[int]] = {}  # position -> positions it waited for
        self.copies: dict[int, int] = {}  # drafted node -> the node that it is a copy of
        self.declarations: dict[int, int] = {}  # name -> the token that declares it
        self.matches: dict[int, list[int]] = {}  # step -> where the end of the text had occurred before
        for step in list(trace.steps):
            for event in step.events:
                self._read(step.index + 1, event)
        self.children = self.nodes.children()

    def _read(self, step: int, event) -> None:
        match event:
            case Propose():
                self.nodes.add(event)
                self.births[event.node] = (step, event)
            case Verdict():
                self.verdicts.setdefault(event.node, []).append((step, event))
            case Score():
                self.scores.setdefault(event.node, []).append((step, event))
            case Distribution():
                self.offers.setdefault(event.node, {})[event.view, event.level] = event
            case Commit():
                self.committed.update(zip(event.nodes, event.logprobs, strict=True))
            case Cell() if event.level is None:
                self.cells.setdefault(event.position, []).append(event)
            case Depend() if event.kind == "causal":
                self.waits.setdefault(event.target, []).append(event.source)
            case Depend() if event.kind == "copy":
                self.copies[event.target] = event.source
            case Depend() if event.kind == "declaration":
                self.declarations[event.target] = event.source
            case Depend() if event.kind == "match":
                self.matches.setdefault(step, []).append(event.source)
        for node in nodes_of(event):
            self.events.setdefault(node, []).append((step, event))

    def of(self, node: int) -> dict:
        """All facts of one node, as plain data.

        `token, id, node, position` (1: the first new token), `state, born, source, drafting` (whether the
        lane drafts), `logprob, verdicts, scores, path, parent, child, siblings, copied, declared, stages,
        attempts, draw, events`. `stages` hold one distribution per view, `attempts` one test per drafted
        sibling, `copied` what a drafted token is a copy of, `declared` where a name is declared. Raises
        Refusal with one sentence if there is no such node.
        """
        if node not in self.nodes.token:
            raise Refusal("This mark is not a token of the trace; click on a token.")
        born, event = self.births.get(node, (None, None))
        parent = self.nodes.parent[node]
        raw = self.events.get(node, [])
        return {
            "token": self.word(node),
            "id": self.nodes.token[node],
            "node": node,
            "position": self.nodes.position[node],
            "state": self.state(node),
            "born": born,
            "source": event.source if event else "prompt",
            "drafting": bool(self.trace.costs.proposed),
            "logprob": event.logprob if event else None,
            "verdicts": [
                {"step": step, **verdict_facts(v, self.trace.vocabulary)}
                for step, v in self.verdicts.get(node, [])
            ],
            "scores": [
                score_facts(step, s) for step, s in self.scores.get(node, []) if s.name != ScoreName.DRAW
            ],
            "path": [{"node": n, "text": self.word(n)} for n in self.path(parent)],
            "parent": parent if parent >= 0 else None,
            "child": self.child(node),
            "siblings": self.siblings(node),
            "copied": self.copied(node),
            "declared": self.declared(node),
            "stages": self.stages(node),
            "attempts": attempts(self, node),
            "draw": self.draw(node),
            "events": [
                {"step": step, "json": json.dumps(event_to_json(e), separators=(",", ":"))}
                for step, e in raw[:MAX_EVENTS]
            ],
            "more_events": max(0, len(raw) - MAX_EVENTS),
        }

    def of_cell(self, position: int, iteration: int) -> dict:
        """The facts of the token that became final at a position, if one did, and `cell`: the token in an
        iteration.

        Positions count the prompt. `cell` holds `token, id, iteration, state, confidence, waits`, the
        `history` of the position and `place`: the position where a person may fix a word, None if nowhere.
        Raises Refusal with one sentence if the position was empty.
        """
        shown = [c for c in self.cells.get(position, []) if c.iteration == iteration]
        if not shown:
            raise Refusal("This position was empty in this iteration; click on a cell with a token.")
        place = position - self.nodes.root
        final = next((n for n in self.committed if self.nodes.position.get(n) == place), None)
        known = [self._cell_facts(c) for c in self.cells[position]]
        waits = sorted({source - self.nodes.root for source in self.waits.get(position, [])})
        fixes = self.trace.parameters.get("fixed_words") is not None
        cell = {
            **self._cell_facts(shown[-1]),
            "history": known,
            "waits": waits,
            "place": position if fixes else None,
        }
        if final is not None:
            return {**self.of(final), "cell": cell}
        empty = {
            name: [] for name in ("verdicts", "scores", "path", "siblings", "stages", "attempts", "events")
        }
        nothing = dict.fromkeys(("node", "born", "logprob", "parent", "child", "draw", "copied", "declared"))
        born = {"position": place, "state": "live", "source": "guess", "drafting": False}
        token = {"token": cell["token"], "id": shown[-1].token, "more_events": 0}
        return {**nothing, **empty, **born, **token, "cell": cell}

    def _cell_facts(self, cell: Cell) -> dict:
        return {
            "token": visible(self.trace.vocabulary.get(cell.token, b"?")),
            "id": cell.token,
            "iteration": cell.iteration,
            "state": cell.state,
            "confidence": cell.confidence,
        }

    def word(self, node: int) -> str:
        """The node's token as text."""
        return self.shown(self.nodes.token[node])

    def shown(self, token: int) -> str:
        """A token as text."""
        return visible(self.trace.vocabulary.get(int(token), b"?"))

    def path(self, node: int) -> list[int]:
        """The last nodes on the path from the root to `node`."""
        return list(islice(self.nodes.upwards(node), PATH))[::-1]

    def state(self, node: int) -> str:
        """The state of the node, in the words of the palette."""
        if node not in self.births or self.births[node][1].source == "copied":
            return "prompt"
        given = self.verdicts.get(node)
        if given and not (node in self.committed and given[-1][1].status in ("finished", "pruned")):
            return STATES[given[-1][1].status]
        return "chosen" if node in self.committed else "live"

    def child(self, node: int) -> int | None:
        """The child that is in the text, else the first; None without children."""
        below = self.children.get(node, [])
        return next((n for n in below if n in self.committed), below[0] if below else None)

    def siblings(self, node: int) -> list[dict]:
        """All children of the node's parent in order of birth, at most ROWS, the node itself among them."""
        everyone = self.children.get(self.nodes.parent[node], [])
        kept = everyone[:ROWS] if node in everyone[:ROWS] else [*everyone[: ROWS - 1], node]
        rows = []
        for n in kept if node in self.births else []:
            last = self.verdicts[n][-1][1] if n in self.verdicts else None
            numbers = {"status": last.status, "p": last.p, "q": last.q} if last else {"status": None}
            look = {"node": n, "text": self.word(n), "id": self.nodes.token[n], "state": self.state(n)}
            rows.append({**look, **numbers, "here": n == node})
        return rows

    def copied(self, node: int) -> dict | None:
        """What a drafted token is a copy of: `{node, text, place, after}`; None if it is no copy. `after`:
        the tokens at which the copy begins, which are also the end of the text.
        """
        source = self.copies.get(node)
        if source is None:
            return None
        after = [self.word(n) for n in self.matches.get(self.births[node][0], [])]
        return {**self.place(source), "after": after}

    def declared(self, node: int) -> dict | None:
        """The token that declares the name that begins here: `{node, text, place}`, None if none does."""
        source = self.declarations.get(node)
        return None if source is None else self.place(source)

    def place(self, node: int) -> dict:
        """A token of the text and its place in words."""
        at = self.nodes.position[node]
        place = f"token {at + self.nodes.root + 1} of the prompt" if at < 1 else f"position {at}"
        return {"node": node, "text": self.word(node), "place": place}

    def draw(self, node: int) -> dict | None:
        """The uniform number that chose this token from a distribution, and the cumulative probabilities
        around it.
        """
        for _, score in self.scores.get(node, []):
            if score.name == ScoreName.DRAW:
                return {"u": score.total, "low": score.parts.get("low"), "high": score.parts.get("high")}
        for _, verdict in self.verdicts.get(node, []):
            if verdict.status in ("resampled", "bonus") and verdict.u is not None:
                return {"u": verdict.u, "low": None, "high": None}
        return None

    # ---- recorded distributions -------------------------------------------------------------------

    def stages(self, node: int) -> list[dict]:
        """The recorded distributions at the node's position: the model's, those of contrasted views and their
        combination, those after each recorded processor, and the draft's.
        """
        rows, before = [], None
        recorded = distribution_stages.in_order(self.offers.get(self.nodes.parent[node], {}))
        each = any(offer.view == "processed" and offer.level is not None for offer in recorded)
        for offer in recorded:
            rows.append(self._stage(node, offer, before, each))
            before = offer if offer.view not in ("draft", "unwanted") else before
        return rows

    def _stage(self, node: int, offer: Distribution, before: Distribution | None, each: bool) -> dict:
        token = self.nodes.token[node]
        pairs = [(int(t), math.exp(logprob)) for t, logprob in offer.top]
        rank = next((i for i, (t, _) in enumerate(pairs, 1) if t == token), None)
        own = pairs[rank - 1][1] if rank else self.probability(node, offer)
        kept = [pair for i, pair in enumerate(pairs) if i < ROWS]
        if own and (rank is None or rank > ROWS):
            kept = [*kept[: ROWS - 1], (token, own)]
        rows = [{"text": self.shown(t), "id": t, "p": p, "here": t == token} for t, p in kept]
        removed = (
            distribution_stages.removed(before, offer)
            if before is not None and offer.view == "processed"
            else None
        )
        return {
            "view": offer.view,
            "title": distribution_stages.title(offer, self.trace.shaping, each),
            "entropy": offer.entropy / math.log(2),
            "rows": rows,
            "rest": max(0.0, 1.0 - math.fsum(p for _, p in kept)),
            "more": offer.among - len(kept) if offer.among is not None else None,
            "rank": rank,
            "p": own,
            "removed": removed or None,
        }

    def probability(self, node: int, offer: Distribution) -> float | None:
        """The probability of a token that the distribution does not list, if another event records it."""
        if offer.among is not None and offer.among <= len(offer.top):
            return 0.0
        if offer.view == "unwanted":
            contrasts = [s.parts for _, s in self.scores.get(node, []) if s.name == ScoreName.CONTRAST]
            return math.exp(contrasts[0][offer.level]) if contrasts and offer.level in contrasts[0] else None
        if offer.level is not None:
            return None
        if offer.view == "combined" and ("processed", None) in self.offers[self.nodes.parent[node]]:
            return None
        raw = self.committed.get(node)
        event = self.births[node][1] if node in self.births else None
        last = self.verdicts[node][-1][1] if node in self.verdicts else None
        if offer.view == "target":
            return math.exp(raw) if raw is not None else None
        if event is None or event.logprob is None:
            return None
        if offer.view == "draft":
            return math.exp(event.logprob) if event.source in ("draft", "small") else None
        if last is not None and last.p is not None:
            return last.p
        own = event.source in ("target", "small") and event.logprob != raw
        return math.exp(event.logprob) if own else None


def nodes_of(event) -> list[int]:
    """The nodes that an event names, each one once."""
    match event:
        case Commit():
            return list(event.nodes)
        case Depend():
            return [event.target] if event.kind in ("attention", "copy", "declaration") else []
        case Propose() | Verdict() | Score() | Distribution() | ConstraintPlace() | AutomatonState():
            return [event.node]
    return []


def verdict_facts(event: Verdict, vocabulary: Mapping[int, bytes]) -> dict:
    """A verdict's status, numbers and reason."""
    numbers = {name: getattr(event, name) for name in ("status", "p", "q", "u")}
    return numbers | {"reason": reason_of(event, vocabulary)}


def score_facts(step: int, event: Score) -> dict:
    """A score with its step."""
    rank = event.rank if isinstance(event, Rank) else None
    return {"step": step, "name": event.name, "total": event.total, "rank": rank, "parts": event.numbers}
