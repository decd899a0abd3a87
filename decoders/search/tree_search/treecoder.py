"""TreeCoder: one tree of partial programs; decoder, constraints, population and temperature are its parts.

Princis et al. (2025), Systematic Exploration and Optimisation of Decoding and Constraints for LLM Code
Generation. The decoders are those of this folder, behind a gate of constraints.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders import registry
from decoders.constraints.settings import CONSTRAINT
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.search.beam.beam_state import EARLY_STOPPING, LENGTH_PENALTY, Beams, best_finished, rank_live
from decoders.search.best_first import best_first
from decoders.search.best_first.search_state import Row, Space, State
from decoders.search.tree_search import constraints, mcts, pg_td
from decoders.search.tree_search.asap import Asap
from decoders.search.tree_search.constraints import ASKED, Gate
from decoders.search.tree_search.program_tree import TRIES, Programs
from decoders.strategy import Part
from decoders.trace.number_format import many


@dataclass(eq=False)
class Particle:
    """One of several texts sampled side by side: its number, and its newest node."""

    number: int
    node: int


class Sampling:
    """Independent texts; a token that a constraint rejects is redrawn. Ends with the first correct text."""

    tries = TRIES

    def __init__(self, programs: Programs):
        self.programs, self.lane = programs, programs.lane
        count = self.lane.parameters["population"]
        self.active = [Particle(number, programs.root) for number in range(count)]

    def turn(self) -> bool:
        """A token for each; those that end, or cannot continue, are no longer active."""
        programs, rows = self.programs, self.programs.rows([p.node for p in self.active])
        for particle, row in zip(self.active, rows, strict=True):
            particle.node = programs.draw(particle.node, row, particle.number, self.tries)
        self.active = self.move([p for p in self.active if p.node is not None])
        right = any(phi == 1.0 for phi in programs.finished.values())
        return bool(self.active) and not right

    def move(self, living: list[Particle]) -> list[Particle]:
        """The living particles whose texts are not complete."""
        return [p for p in living if p.node not in self.programs.finished]

    def best(self) -> int | None:
        """The complete text with the highest value, on a tie the earliest."""
        return max(self.programs.finished, key=self.programs.finished.__getitem__, default=None)


class Smc(Sampling):
    """Texts side by side, each of which draws once: those that a constraint rejects are replaced by copies of
    the others (sequential Monte Carlo with weights 0 and 1).
    """

    tries = 1

    def move(self, living: list[Particle]) -> list[Particle]:
        """As many particles as before, if any live: the lost ones are resampled from the living, weighted by
        Phi.
        """
        moving = super().move(living)
        weights = [self.programs.gate.worth(p.node) for p in moving]
        taken = {p.number for p in living}
        for number in (p.number for p in self.active if p.number not in taken and moving):
            depth = self.lane.tree.depths[moving[0].node]
            tag = ("select", depth, number)
            chosen = self.lane.chooser.categorical(torch.tensor(weights), tag).value
            moving.append(Particle(number, moving[chosen].node))
        return sorted(moving, key=lambda p: p.number)


class Beam:
    """Beam search; a continuation that a constraint rejects does not compete."""

    def __init__(self, programs: Programs):
        self.programs, self.lane = programs, programs.lane
        self.beams = Beams(self.lane, self.lane.parameters["population"], worth=programs.gate.worth)

    def turn(self) -> bool:
        """Advances by one position."""
        live = self.beams.live
        logprobs = self.lane.distribution(live, self.lane.score(live))  # [B, V]
        self.beams.advance(self.gated(self.lane.constrained(logprobs, live)), logprobs)
        rank_live([self.beams])
        for ended in self.beams.finished:
            self.programs.finished.setdefault(ended.node, self.programs.gate.worth(ended.node))
        return bool(self.beams.live)

    def gated(self, logprobs: torch.Tensor) -> torch.Tensor:
        """The same log-probabilities [B, V] without what a constraint rejects, among all that may be kept."""
        gate, live, scores = self.programs.gate, self.beams.live, logprobs
        if not gate.names:
            return scores
        sums, seen = torch.tensor(self.beams.totals, device=scores.device)[:, None], set()
        scores = scores.clone()
        for _ in range(TRIES):
            top = (sums + scores).flatten().topk(min(self.beams.num_candidates, scores.numel()))
            places = [divmod(i, scores.shape[1]) for i in top.indices[top.values > -torch.inf].tolist()]
            new = [place for place in places if place not in seen]
            if not new:
                break
            for slot, (row, token) in enumerate(new):
                seen.add((row, token))
                if not gate.phi(live[row], token):
                    gate.reject(live[row], token, float(logprobs[row, token]), slot)
                    scores[row, token] = -torch.inf
        return scores

    def best(self) -> int | None:
        """The finished text with the highest score, among those of the greatest worth."""
        ended = best_finished([self.beams])
        self.programs.logprob.update(self.beams.logprobs)
        return ended[0].node if ended else None


class GatedSpace(Space):
    """States of a best-first search, without those that a constraint rejects."""

    def __init__(self, programs: Programs):
        super().__init__(programs.lane, children=4, length_penalty=0.0, order="bound")
        self.programs = programs

    def read(self, nodes: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """The model's own log-probabilities [N, V], and the same within the lane's constraint: its
        temperature applies to draws only.
        """
        logprobs = self.lane.distribution(nodes, self.lane.score(nodes))
        return logprobs, self.lane.constrained(logprobs, nodes)

    def _propose(self, row: Row, offers: list[tuple[int, float]]) -> list[State]:
        gate, parent, tried = self.programs.gate, row.parent.node, 0
        while True:
            kept = [offer for offer in offers if gate.phi(parent, offer[0])]
            for token, logprob in offers:
                row.proposed.add(token)
                if (token, logprob) not in kept:
                    gate.reject(parent, token, logprob)
            tried += len(offers)
            if kept or not offers or tried >= TRIES or len(row.proposed) >= len(row.logprobs):
                break
            offers = row.next(self.children)
        made = super()._propose(row, kept)
        for state in made:
            if state.complete:
                self.programs.finished[state.node] = gate.worth(state.node)
        return made


class BestFirst:
    """Opens the most likely prefixes that wait, `population` per turn."""

    def __init__(self, programs: Programs):
        self.programs, self.space = programs, GatedSpace(programs)
        self.frontier = best_first.BestFirst(self.space)
        self.frontier.push([self.space.root])
        self.turns = 0

    def turn(self) -> bool:
        """Opens the first states of the queue."""
        self.turns += 1
        states = self.frontier.take(self.programs.lane.parameters["population"])
        self.frontier.push(self.space.open(states) if states else [])
        return bool(states) and self.turns < self.programs.lane.parameters["rollouts"]

    def best(self) -> int | None:
        """The finished text that came first in the queue, else the most likely; greater worth comes first."""
        self.programs.logprob.update(self.space.logprobs)
        self.programs.unjudged.update(self.space.logprobs)
        if self.frontier.winner is not None and self.programs.finished[self.frontier.winner.node] == 1.0:
            return self.frontier.winner.node
        worth, place = self.programs.finished, {n: -i for i, n in enumerate(self.programs.finished)}
        return max(worth, key=lambda node: (worth[node], place[node]), default=None)


class GatedSearch(pg_td.Search):
    """Monte Carlo tree search whose children and completions are kept within the constraints."""

    def __init__(self, programs: Programs):
        self.programs = programs
        given = {p.name: p.default for p in registry.get("pg_td").parameters} | programs.lane.parameters
        super().__init__(programs.lane, given | {"width": max(2, given["population"])}, programs.gate)

    def open(self, node: int) -> mcts.State:
        """A state without the edges that a constraint rejects."""
        state = super().open(node)
        for edge in list(state.edges):
            if not self.programs.gate.worth(edge.node):
                self.lane.verdict(edge.node, "rejected", reason=self.programs.gate.why(edge.node))
                state.edges.remove(edge)
                del self.logprob[edge.node]
        return state

    def complete(self, node: int) -> list[int]:
        """The last node of one completion, greedy or drawn; a dead end has value 0."""
        return [self.sample(node)]

    def back_up(self, edge: mcts.Edge, value: float) -> None:
        """Q is the mean of all results (the win rate, where Phi is 0 or 1), or the best of them."""
        if self.lane.parameters["backup"] == "maximum":
            super().back_up(edge, value)
        else:
            edge.value += (value - edge.value) / edge.visits

    def sample(self, node: int) -> int:
        """The end of a completion."""
        while not self.ends(node):
            below = self.programs.draw(node, self.programs.rows([node])[0], self.done)
            if below is None:
                return node
            self.logprob[below], node = self.programs.logprob[below], below
        return node


class Mcts:
    """Monte Carlo tree search with Phi of the completed text as the result of a rollout."""

    def __init__(self, programs: Programs):
        self.programs, self.search = programs, GatedSearch(programs)
        self.left = programs.lane.parameters["rollouts"]

    def turn(self) -> bool:
        """Runs one rollout; over once a text is correct."""
        self.search.rollout()
        self.left -= 1
        return self.left > 0 and 1.0 not in self.search.texts.values()

    def best(self) -> int | None:
        """The completed text with the highest value, on a tie the earliest."""
        search = self.search
        self.programs.logprob.update(search.logprob)
        self.programs.unjudged.update(search.logprob)
        worth = {node: value for node, value in search.texts.items() if search.ends(node) and value}
        self.programs.finished.update(worth)
        return max(worth, key=worth.__getitem__, default=None)


class BestAsap(Asap):
    """ASAp that takes the text of the greatest worth, on a tie the last one."""

    def best(self) -> int | None:
        """The complete text with the highest Phi; on a tie the last one drawn, else the earliest."""
        worth = self.programs.finished
        return max(worth, key=lambda node: (worth[node], node == self.last), default=None)


DECODERS = {
    "sampling": (
        Sampling,
        "Several texts (population) are drawn side by side; one that a constraint ends is redrawn.",
    ),
    "beam": (Beam, "Beam search; population is the number of beams."),
    "smc": (Smc, "Several texts (population); copies of others replace those that a constraint ends."),
    "mcts": (Mcts, "Monte Carlo tree search: each rollout completes a text, and Phi is its value."),
    "asap": (
        lambda programs: BestAsap(programs, programs.lane.parameters["population"], False),
        "Several texts (population), one after another; dead ends teach how much of what follows is allowed.",
    ),
    "best first": (
        BestFirst,
        "The most likely prefixes in the queue, as many per iteration as population says.",
    ),
}
DETERMINISTIC = ("beam", "best first")


def badge(parameters: dict) -> str:
    """Whether anything is drawn."""
    deterministic = parameters["decoder"] in DETERMINISTIC or parameters["temperature"] == 0.0
    return "deterministic" if deterministic else "sampled"


@strategy(
    name="treecoder",
    title="TreeCoder",
    family="search",
    parameters=(
        choice("decoder", "beam", "Which partial programs are continued.", DECODERS),
        *ASKED,
        integer(
            "population", 4, "Number of texts side by side: beams, samples or particles.", low=1, high=32
        ),
        real("temperature", 1.0, "Temperature of draws: below 1 sharper, 0 is greedy.", low=0.0, high=100.0),
        integer("rollouts", 32, "For mcts and best first: maximum number of iterations.", low=1, high=2000),
        choice(
            "backup",
            "win rate",
            "For mcts: the value of a prefix is the mean Phi of its rollouts, or the best of them.",
            ("win rate", "maximum"),
        ),
        LENGTH_PENALTY,
        EARLY_STOPPING,
        *CONSTRAINT,
    ),
    papers=("treecoder",),
    together=constraints.unusable,
    view="beam_tree",
    badge=badge,
    parts=lambda parameters: [
        Part("decoder", parameters["decoder"], DECODERS[parameters["decoder"]][1]),
        *constraints.constraint_parts(parameters),
    ],
)
def treecoder(lane: Lane) -> Iterator[None]:
    """Any decoder under any constraints, over one tree of partial programs.

    1. The model offers continuations of the active prefixes.
    2. Constraints are checked: on each prefix (syntax, comments), and on complete texts (tests). Each gives
       a value from 0 to 1, and their product is `Phi = prod_i Phi_i`. A text with Phi = 0 is never continued.
    3. The decoder scores the remaining prefixes and chooses which are active next: several samples, beams,
       resampled particles (SMC), a tree search, ASAp, or the most likely prefixes first.
    4. A complete text with the highest Phi is the answer. If several have it, beams take the one with the
       best score, and ASAp takes the last one drawn if it is among them. With beams, only texts that end
       among the best candidates count as complete.

    The tree search is that of PG-TD with its bonus; Q is the win rate, as in the paper, or the best result.
    Sampling and tree search end with the first complete text that has Phi 1. If no text passes, greedy
    decoding writes one without constraints, and a note says so. The experiment program-search looks for the
    best combination of parts. A type checker is not among the constraints. A grammar or schema (constraint)
    masks every distribution before any of this; ASAp learns what it removes.
    """
    programs = Programs(lane, Gate(lane))
    decoder = DECODERS[lane.parameters["decoder"]][0](programs)
    while decoder.turn():
        yield
    winner = decoder.best()
    lane.note(
        f"{many(len(programs.finished), 'complete text')}, "
        f"{many(programs.gate.calls, 'check')} of constraints."
    )
    yield from programs.conclude(winner)
