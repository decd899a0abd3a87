"""Speculative Jacobi decoding: Jacobi iteration for sampled text that keeps its distribution.

Teng et al. (2024), Accelerating Auto-regressive Text-to-Image Generation with Training-free Speculative
Jacobi Decoding; here for text. The draft of a round consists of the tokens that the previous round drew at
the same positions. New positions start from a guess; the paper's guesses from neighbouring image tokens have
no counterpart in text.
"""

from dataclasses import dataclass, field

import torch

from decoders.chooser import Known
from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.sampling.sampling_parameters import ENDS, SHAPING
from decoders.speculative.declaration import speculative
from decoders.speculative.draft_verify_loop import distributions, drawn_again
from decoders.speculative.interfaces import (
    FIXED,
    SAMPLED,
    Draft,
    Drafter,
    Pair,
    Seen,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.methods.prompt_lookup import look_up
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.waits import DEPENDENCIES, LENS, Redo, Standing, Waits

LARGEST = 3  # longest n-gram by which a guess is looked up in the text
VERIFIERS = {"token rejection": RECURSIVE_REJECTION, "node sampling": NODE_SAMPLING}


@dataclass
class Window:
    """The drafter. `drawn[i]`: the token that was drawn for the i-th place after the newest token, and the
    distribution [V] from which it was drawn; for a first guess, all mass on the guess.
    """

    size: int
    first_guess: str
    fill: str
    verifier: Verifier
    drawn: list[tuple[int, torch.Tensor]] = field(default_factory=list)
    passes: int = 0
    waits: Waits = field(default_factory=Waits)

    def propose(self, lane: Lane) -> Draft:
        """A chain of the drawn tokens, with first guesses at places where nothing has been drawn yet."""
        draft, node = Draft(lane.tip), lane.tip
        self.drawn = self.drawn[: lane.left - 1]
        for place in range(min(self.size, lane.left - 1)):
            if place == len(self.drawn):
                token = self.guess(lane, node, place)
                self.drawn.append((token, sure_of(token, lane)))
                position = lane.tree.depths[node] + 1
                lane.cell(position, self.passes, token, "guess")
                self.waits.guess(position, token)
            token, q = self.drawn[place]
            if self.fill == SAMPLED:
                draft.q[node] = q
            logprob = float(q[token].log())
            node = draft.propose(lane, node, token, logprob, source="window", fill=self.fill)
            if token in lane.eos:
                break
        return draft

    def guess(self, lane: Lane, node: int, place: int) -> int:
        """A first guess for the place after `node`, which the model has not read yet."""
        text, prompt = lane.tree.text(node), lane.trace.prompt
        if self.first_guess == "lookup":
            start, n = look_up(text, LARGEST)
            return text[start] if n else text[-1]
        if self.first_guess == "prompt":
            tag = ("guess", lane.written, place)
            return prompt[lane.chooser.categorical(torch.ones(len(prompt)), tag).value]
        return text[-1]

    def observe(self, lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        """Draws all places after the new text again from this forward's distributions, and records cells."""
        self.passes += 1
        before = [token for token, _ in self.drawn]
        first = lane.tree.depths[draft.root] + 1  # first position of this round
        end = lane.tree.depths[lane.tip] + 1  # first position of the next round
        for position, token in enumerate(lane.tree.text(lane.tip)[first:], first):
            lane.cell(position, self.passes, token, "settled")
        seen_at = dict(zip(seen.nodes, range(len(seen.nodes)), strict=True))
        chain = [draft.root, *draft.nodes]
        rows = [seen_at[n] for n in chain[end - first :] if n in seen_at]
        nodes = [seen.nodes[row] for row in rows]
        probs = distributions(lane, lane.process(seen.logits[rows], nodes)) if rows else []
        self.drawn, given = [], {}
        if verification.token is not None:
            node = lane.tree.parents[lane.tip]
            given[end - 1] = self.standing(
                verification.token, node, verification.u, self.verified_again(lane, draft, node, verification)
            )
        for position, p, node in zip(range(end, end + len(nodes)), probs, nodes, strict=True):
            token, u = lane.chooser.categorical(p, ("draft", position, self.passes))
            given[position] = self.standing(token, node, u, drawn_again(lane, u))
            self.drawn.append((token, p / p.sum()))
            place = position - first
            kept = place < len(before) and before[place] == token
            lane.cell(position, self.passes, token, "kept" if kept else "changed", float(p[token]))
        if lane.parameters["dependencies"]:
            self.waits.read(lane, given)
            self.waits.settle(lane, range(first, end))

    def standing(self, token: int, node: int, u: float | None, redo: Redo) -> Standing:
        """A token that the uniform number u selected. If the chooser gives no numbers, it cannot be drawn
        again.
        """
        drawn = self.fill == SAMPLED
        return Standing(token) if drawn and u is None else Standing(token, node, redo, drawn)

    def verified_again(self, lane: Lane, draft: Draft, node: int, verification: Verification) -> Redo:
        """A function that verifies again with the same uniform numbers and other logits of the target: the
        token that would have been written after `node`, where `verification` ended.
        """
        tested = verification.tests[-1].u if draft.children.get(node) else None
        numbers = Known({"accept": tested, "sample": verification.u})
        place = Draft(node, children={node: draft.children.get(node, [])})
        place.q = {node: draft.q[node]} if node in draft.q else {}

        def redo(logits: torch.Tensor, after: int) -> int:
            p = distributions(lane, lane.process(logits, [after]))[0]
            here = VerifierInput(place, lane.tree.tokens, {node: p}, numbers, lane.tree.depths[node])
            other = self.verifier.verify(here)
            return lane.tree.tokens[other.path[0]] if other.token is None else other.token

        return redo


def sure_of(token: int, lane: Lane) -> torch.Tensor:
    """The distribution [V] with all mass on `token`."""
    engine = lane.models["target"].engine
    sure = torch.zeros(engine.vocabulary, dtype=torch.float64, device=getattr(engine, "device", "cpu"))
    sure[token] = 1.0
    return sure


@speculative(
    name="sjd",
    title="Speculative Jacobi",
    family="parallel",
    parameters=(
        integer("block_size", 8, "Number of positions that are drawn together.", low=1, high=64),
        choice(
            "first_guess",
            "lookup",
            "What a new position starts from: what followed the same tokens before, the last token again, "
            "or any token of the prompt.",
            ("lookup", "repeat", "prompt"),
        ),
        choice("verifier", "token rejection", "The test that a guess must pass.", VERIFIERS),
        DEPENDENCIES,
        *SHAPING,
        *ENDS,
    ),
    papers=("accelerating-auto-regressive-text-to-image-generation",),
    view="parallel_grid",
    further_part=lambda parameters: LENS,
)
def sjd_pair(parameters: dict) -> Pair:
    """Samples a window of positions at once, repeatedly; draws that pass the next forward's test stay.

    1. Each position of the window holds a token and the distribution `q` that it was drawn from.
    2. One forward gives the distribution `p` at every position, given the tokens before it.
    3. From the left, a token is kept with probability `min(1, p/q)`. The first that is not is drawn again
       from the residual `norm(max(p - q, 0))`; everything up to there is final.
    4. All later positions are drawn again, from the distributions of that forward. These were conditioned on
       a token that has been replaced, so the draws are only the next guesses.

    The text has exactly the model's distribution. A draw is often right where the model is confident without
    knowing the tokens before. At temperature 0 it writes the text of Jacobi decoding, but usually in other
    rounds: here the window is refilled to block_size positions after each round, while Jacobi decoding solves
    a block before it begins the next one. If one block holds the whole text, the rounds are the same.

    A position waited for an earlier one if the same uniform numbers give it another token when the older
    token is put back there (at temperature 0: the token that it had before). Lens forwards, counted
    separately, test this.
    """
    temperature = parameters["temperature"]
    fill = FIXED if temperature == 0.0 else SAMPLED
    verifier = GREEDY_MATCH if temperature == 0.0 else VERIFIERS[parameters["verifier"]]
    window = Window(parameters["block_size"], parameters["first_guess"], fill, verifier)
    drafter = Drafter(
        window.propose,
        fill,
        observe=window.observe,
        name="window of drawn tokens",
        says="What the previous forward drew at the same positions, given tokens that may have changed "
        "since.",
    )
    return drafter, verifier
