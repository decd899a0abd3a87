"""Every step of any lane as one sentence with its numbers: what was chosen, against what, and what was lost.

A fold over Propose, Verdict, Score, Cell, Distribution and Commit. For screen readers, and for anyone who
would rather read. Knows no strategy by name.
"""

import math

from decoders.trace.costs import UNTESTED, Costs, DraftRound
from visualizers.scene.marks import Nodes, many, probability, visible

NOT_DRAFTED = (UNTESTED - {"guess"}) | {"person", "copied"}  # sources
SCORES = {"sum_logprob": "Σ log p"}  # names of scores as they are written
NAMED = 4  # tokens that a sentence names before it counts


class Sentences:
    """`feed(step)` puts the step in words; `nodes` must have read the step's Propose events before."""

    def __init__(self, nodes: Nodes):
        self.nodes = nodes
        self.offers: dict[int, tuple[list, float]] = {}  # node -> top tokens after it, entropy in nats
        self.costs = Costs()

    def feed(self, step) -> str:
        """One sentence, or two where the strategy left a note of its own."""
        by_type: dict[str, list] = {}
        made = self.costs.add(step)
        for event in step.events:
            if type(event).__name__ != "Cell" or event.level is None:  # only those of the lane's own text
                by_type.setdefault(type(event).__name__, []).append(event)
        for event in by_type.get("Distribution", []):
            if event.view == "target" and event.level is None:
                self.offers[event.node] = (event.top, event.entropy)
        drafted = [e for e in by_type.get("Propose", []) if e.source not in NOT_DRAFTED]
        if by_type.get("Cell") and all(event.source == "guess" for event in drafted):
            caption = iteration(step.index, by_type["Cell"], self.token)
        elif made is not None:
            committed = [node for event in by_type.get("Commit", []) for node in event.nodes]
            caption = drafting(step.index + 1, made, by_type["Verdict"], committed, self.nodes.text)
        elif any(event.rank == 1 for event in by_type.get("Score", [])):
            caption = self.beams(step.index + 1, by_type)
        else:
            caption = self.tokens(step.index + 1, by_type.get("Commit", []))
        return " ".join([caption, *(event.text for event in by_type.get("Note", []))])

    def token(self, token: int) -> str:
        """A token id as text."""
        return visible(self.nodes.header.vocabulary.get(token, b"?"))

    def tokens(self, number: int, commits: list) -> str:
        """A step that commits tokens one by one: each with p, the best other token and the entropy."""
        parts = [
            self.choice(n, p) for event in commits for n, p in zip(event.nodes, event.logprobs, strict=True)
        ]
        if not parts:
            return f"Step {number}: nothing is final yet."
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

    def beams(self, number: int, by_type: dict[str, list]) -> str:
        """A step of ranked hypotheses: who leads with what, and how many fell out."""
        best = next(event for event in by_type["Score"] if event.rank == 1)
        name = SCORES.get(best.name, best.name.replace("_", " "))
        score = f"{name} {best.total:.2f}".replace("-", "−")
        leads = f"Step {number}: “…{self.ending(best.node)}” leads with {score}"
        ranked = len({event.node for event in by_type["Score"] if event.rank is not None})
        statuses = [event.status for event in by_type.get("Verdict", [])]
        counts = [
            (ranked, "live"),
            (statuses.count("pruned"), "pruned"),
            (statuses.count("finished"), "finished"),
        ]
        others = ", ".join(f"{n} {what}" for n, what in counts if n)
        return leads + (f"; {others}." if others else ".")

    def ending(self, node: int) -> str:
        """The last tokens before and with a node."""
        return "".join(self.nodes.text(n) for n in self.nodes.path(node)[-NAMED:])


def drafting(number: int, made: DraftRound, verdicts: list, commits: list[int], text) -> str:
    """A round of drafting and checking: how many were accepted, what was rejected, what came instead."""
    judged = {event.node: event for event in verdicts}
    caption = f"Round {number}: {made.accepted} of {many(len(made.nodes), 'drafted token')} accepted"
    lost = next((v for v in judged.values() if v.status == "rejected"), None)
    last = judged.get(commits[-1]) if commits else None
    if lost is not None:
        numbers = [("p", lost.p), ("q", lost.q), ("u", lost.u)]
        known = [f"{name} {probability(value)}" for name, value in numbers if value is not None]
        caption += f"; {quoted(text(lost.node))} rejected" + (f" ({', '.join(known)})" if known else "")
    if last is not None and last.status == "resampled":
        caption += f"{',' if lost else ';'} {quoted(text(last.node))} written instead"
    if last is not None and last.status == "bonus":
        caption += f"; bonus token {quoted(text(last.node))}"
    return caption + "."


def iteration(number: int, cells: list, token) -> str:
    """An iteration over positions: which settled, and how many others changed or stayed."""
    settled = [quoted(token(cell.token)) for cell in cells if cell.state == "settled"]
    counts = [(sum(c.state == state for c in cells), state) for state in ("changed", "kept", "guess")]
    caption = f"{many(len(settled), 'position')} settled" + (f" ({listed(settled, ', ')})" if settled else "")
    others = "".join(f", {n} {'guessed' if state == 'guess' else state}" for n, state in counts if n)
    return (f"Iteration {number}: " if number else "First guess: ") + caption + others + "."


def quoted(token: str) -> str:
    """A token within a sentence."""
    return f"“{token}”"


def listed(words: list[str], between: str) -> str:
    """The first few words, and how many more there are."""
    more = [f"and {len(words) - NAMED} more"] if len(words) > NAMED else []
    return between.join([*words[:NAMED], *more])
