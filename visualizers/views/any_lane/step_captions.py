"""Every step of any lane as one sentence with its numbers: what was chosen, against what, and what was lost.

A fold over Propose, Verdict, Rank, Cell, Distribution and Commit. For screen readers, and for anyone who
would rather read.
"""

import math

from decoders.trace.costs import Costs, DraftRound
from decoders.trace.events import FINAL_STATES, Cell, Commit, Distribution, Note, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from decoders.trace.token_text import visible
from visualizers.scene.nodes import Nodes
from visualizers.scene.words import probability

CANVAS = "canvas"  # source of a drafted canvas, which is a node but no token of the text
SCORES = {ScoreName.SUM_LOGPROB: "Σ log p"}  # names of scores as they are written
NAMED = 4  # tokens that a sentence names before it counts


class Sentences:
    """`feed(step)` puts the step in words; `nodes` must have read the step's Propose events before."""

    def __init__(self, nodes: Nodes):
        self.nodes = nodes
        self.offers: dict[int, tuple[list, float]] = {}  # node -> top tokens after it, entropy in nats
        self.costs = Costs()
        self.made: DraftRound | None = None  # the round of the newest step
        self.canvases: set[int] = set()  # nodes that are drafted canvases
        self.masks: set[int] = set()  # positions of a canvas that hold a mask
        self.given = 0  # steps that only hold the tokens with which the lane begins: 0 or 1
        self.final = False  # whether a token is output

    def feed(self, step) -> str:
        """One sentence, or two where the strategy left a note of its own."""
        by_type: dict[type, list] = {}
        self.made = self.costs.add(step)
        for event in step.events:
            if not isinstance(event, Cell) or event.level is None:  # only those of the lane's own text
                by_type.setdefault(type(event), []).append(event)
        for event in by_type.get(Distribution, []):
            if event.view == "target" and event.level is None:
                self.offers[event.node] = (event.top, event.entropy)
        caption = self.caption(step.index + 1, by_type, self.made)
        self.final = self.final or Commit in by_type
        return " ".join([caption, *(event.text for event in by_type.get(Note, []))])

    def caption(self, number: int, by_type: dict[type, list], made: DraftRound | None) -> str:
        """The step in the words of its kind: an iteration over positions, a round, ranked texts or tokens."""
        born, commits = by_type.get(Propose, []), by_type.get(Commit, [])
        committed = [node for event in commits for node in event.nodes]
        if any(event.given for event in born):
            self.given = 1
            return f"Step {number}: begins with {many(len(committed), 'given token')}."
        self.canvases |= {event.node for event in born if event.source == CANVAS}
        verdicts = {event.node: event for event in by_type.get(Verdict, [])}
        if made is not None and not set(made.nodes) <= self.canvases:
            return drafting(number - self.given, made, verdicts, committed, self.nodes)
        if cells := by_type.get(Cell):
            return self.iteration(cells, [event for event in born if event.source == CANVAS], verdicts)
        if any(event.rank == 1 for event in by_type.get(Rank, [])):
            return self.ranked(number, by_type[Rank], verdicts, committed)
        return self.tokens(number, commits)

    def token(self, token: int) -> str:
        """A token id as text."""
        return visible(self.nodes.header.vocabulary.get(token, b"?"))

    def tokens(self, number: int, commits: list) -> str:
        """A step that commits tokens one by one: each with p, the best other token and the entropy."""
        parts = [
            self.choice(n, p) for event in commits for n, p in zip(event.nodes, event.logprobs, strict=True)
        ]
        if not parts:
            return f"Step {number}: " + (
                "no other token is final." if self.final else "nothing is final yet."
            )
        return f"Step {number}: {listed(parts, '; ')}."

    def choice(self, node: int, logprob: float | None) -> str:
        """`“␣dog” (p .12, top-1: “␣big” .63, entropy 1.50 bits)`."""
        caption = quoted(self.nodes.text(node))
        if logprob is None:
            return caption
        numbers = [f"p {probability(math.exp(min(0.0, logprob)))}"]
        top, entropy = self.offers.get(self.nodes.parent.get(node, -1), ([], None))
        others = [(t, p) for t, p in top if t != self.nodes.token.get(node)]
        if others:
            token, best = others[0]
            how = "next" if best <= logprob else "top-1:"
            numbers.append(f"{how} {quoted(self.token(token))} {probability(math.exp(min(0.0, best)))}")
        if entropy is not None:
            numbers.append(f"entropy {entropy / math.log(2):.2f} bits")
        return f"{caption} ({', '.join(numbers)})"

    def iteration(self, cells: list, drafts: list, verdicts: dict) -> str:
        """An iteration over positions: which are final now, how many others changed or stayed, and how many
        masks are left on a canvas. `drafts`: the canvases that were drafted for it.
        """
        self.masks |= {cell.position for cell in cells if cell.state == "mask"}
        number = max(cell.iteration for cell in cells)
        now = [cell for cell in cells if cell.iteration == number and cell.state not in ("mask", "trimmed")]
        done = [cell for cell in now if cell.state in FINAL_STATES]
        counts = {state: sum(cell.state == state for cell in now) for state in ("changed", "kept", "guess")}
        verb = "filled" if self.masks else "settled"
        self.masks -= {
            cell.position for cell in cells if cell.state in FINAL_STATES or cell.state == "trimmed"
        }
        parts = []
        if drafts:
            accepted = sum(verdicts[e.node].status == "accepted" for e in drafts if e.node in verdicts)
            parts.append(f"{accepted} of {many(len(drafts), 'drafted canvas', 'drafted canvases')} accepted")
        if done or verb == "filled":
            words = listed([quoted(self.token(cell.token)) for cell in done], ", ")
            parts.append(f"{many(len(done), 'position')} {verb}" + (f" ({words})" if words else ""))
        parts += [f"{n} {'guessed' if state == 'guess' else state}" for state, n in counts.items() if n]
        if verb == "filled":
            parts.append(f"{many(len(self.masks), 'mask')} left")
        return (f"Iteration {number}: " if number else "First guess: ") + ", ".join(parts) + "."

    def ranked(self, number: int, scores: list, verdicts: dict, committed: list[int]) -> str:
        """A step of ranked hypotheses: who leads with what, how many go on and how many fell out."""
        best = next(event for event in scores if event.rank == 1)
        name = SCORES.get(best.name, best.name.replace("_", " "))
        score = f"{best.total:.2f}".replace("-0.00", "0.00").replace("-", "−")
        ending = self.ending(best.node)
        leads = f"“…{ending}” leads with {name} {score}" if ending else f"the best {name} is {score}"
        over = {node for node, verdict in verdicts.items() if verdict.status in ("pruned", "finished")}
        live = {(e.node, e.level) for e in scores if e.rank is not None} - {(n, None) for n in committed}
        statuses = [verdict.status for verdict in verdicts.values()]
        counts = [
            (sum(node not in over for node, _ in live), "live"),
            (statuses.count("pruned"), "pruned"),
            (statuses.count("finished"), "finished"),
        ]
        others = ", ".join(f"{n} {what}" for n, what in counts if n)
        return f"Step {number}: {leads}" + (f"; {others}." if others else ".")

    def ending(self, node: int) -> str:
        """The last tokens before and with a node."""
        return "".join(self.nodes.text(n) for n in self.nodes.path(node)[-NAMED:])


def drafting(number: int, made: DraftRound, verdicts: dict, committed: list[int], nodes: Nodes) -> str:
    """A round: how many of the tokens that the target was given it accepted, where it stopped, and what came
    instead.
    """
    if not made.nodes:
        words = listed([quoted(nodes.text(node)) for node in committed], ", ")
        return f"Round {number}: " + (f"{words} written without a draft." if words else "nothing is tested.")
    caption = f"Round {number}: {made.accepted} of {many(len(made.nodes), 'drafted token')} accepted"
    last = verdicts.get(committed[-1]) if committed else None
    instead = last is not None and last.status == "resampled"
    rejected = [verdicts[node] for node in made.nodes if verdicts[node].status == "rejected"]
    # where the round ended: rejected tokens elsewhere had a sibling that was accepted
    end = nodes.parent.get(last.node) if instead else committed[-1] if committed else None
    lost = next((v for v in rejected if end is None or nodes.parent.get(v.node) == end), None)
    others = len(rejected) - (lost is not None)
    if lost is not None:
        numbers = [("p", lost.p), ("q", lost.q), ("u", lost.u)]
        known = [f"{name} {probability(value)}" for name, value in numbers if value is not None]
        caption += f"; {quoted(nodes.text(lost.node))} rejected" + (f" ({', '.join(known)})" if known else "")
    if others:
        caption += (
            f", {others} {'others' if others > 1 else 'other'} rejected" if lost else f", {others} rejected"
        )
    if instead:
        caption += f"{',' if lost else ';'} {quoted(nodes.text(last.node))} written instead"
    if last is not None and last.status == "bonus":
        caption += f"; bonus token {quoted(nodes.text(last.node))}"
    return caption + "."


def quoted(token: str) -> str:
    """A token within a sentence."""
    return f"“{token}”"


def listed(words: list[str], between: str) -> str:
    """The first few words, and how many more there are."""
    more = [f"and {len(words) - NAMED} more"] if len(words) > NAMED else []
    return between.join([*words[:NAMED], *more])
