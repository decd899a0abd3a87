"""Frustratingly simple decoding: the model against an anti-model, built from the text so far, that predicts
what to avoid.

Both forms that "A Thorough Examination of Decoding Methods in the Era of LLMs" (2024) compares (item 13):
counts of n-grams (FSD-d there) and last-layer states (FSD).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.candidates import Parts, likeliest, take_best
from decoders.sampling.next_token import processed
from decoders.sampling.sampling_parameters import MODEL_DEFAULTS
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

FORMS = ("n-grams", "states")
USUAL = dict(zip(FORMS, (3, 2), strict=True))  # form -> the authors' n


class NGrams:
    """A smoothed n-gram model of the text: counts of what followed each run of up to n - 1 tokens."""

    def __init__(self, text: list[int], n: int, beta: float):
        self.n, self.beta = n, beta
        self.text: list[int] = []
        self.after: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for token in text:
            self.visit(token)

    def visit(self, token: int) -> None:
        """The text continues with `token`."""
        for context in self._contexts():
            self.after[context][token] += 1
        self.text.append(token)

    def penalty(self, token: int) -> float:
        """The smoothed probability of `token` after the newest tokens, longest run first. A run that it never
        followed is skipped and leaves its weight to shorter ones.
        """
        penalty, weight = 0.0, 1.0
        for context in self._contexts():
            followed = self.after.get(context, Counter())
            if not followed[token]:
                continue
            if not context:
                return penalty + weight * followed[token] / followed.total()
            penalty += weight * self.beta * followed[token] / (followed.total() + 1)
            weight *= 1 - self.beta
        return penalty

    def _contexts(self) -> list[tuple[int, ...]]:
        """The newest tokens as contexts, from the longest to the empty one."""
        longest = min(self.n - 1, len(self.text))
        return [tuple(self.text[len(self.text) - size :]) for size in range(longest, -1, -1)]


class States:
    """For every position, the last n - 1 states as one unit vector, and the token that followed."""

    def __init__(self, text: list[int], n: int):
        self.text, self.width = list(text), n - 1
        self.newest: list[torch.Tensor] = []  # states [d] of the last places, at most `width`
        self.windows: list[torch.Tensor] = []  # [width * d] each; number i ends at place i + width - 1
        self.penalties: dict[int, float] = {}

    def see(self, state: torch.Tensor) -> None:
        """Adds the state [d] of the text's next place, and compares its window with all earlier ones."""
        self.newest = [*self.newest, state.double()][-self.width :]
        self.penalties = {}
        if len(self.newest) < self.width:
            return
        window = torch.cat(self.newest)
        window = window / window.norm()
        if self.windows:
            likeness = (torch.stack(self.windows) @ window).clamp(0.0, 1.0).tolist()  # [T]
            for token, cosine in zip(self.text[self.width :], likeness, strict=False):
                self.penalties[token] = max(cosine, self.penalties.get(token, 0.0))
        self.windows.append(window)

    def visit(self, token: int) -> None:
        """The text continues with `token`."""
        self.text.append(token)

    def penalty(self, token: int) -> float:
        """The largest cosine of the present window with one that `token` followed; 0 if it never occurred."""
        return self.penalties.get(token, 0.0)


@strategy(
    name="fsd",
    title="Frustratingly simple decoding",
    family="sampling",
    parameters=(
        choice("form", FORMS[0], "What the second model compares: tokens, or hidden states.", FORMS),
        real("alpha", 0.4, "Weight of the penalty; 0 is greedy.", low=0.0, high=1.0),
        integer("top_k", 5, "Candidates at each position; 1 is greedy.", low=1, high=64),
        integer("n", 0, "Length of the n-grams, 2 or more; 0: 3 for n-grams, 2 for states.", low=0, high=12),
        real(
            "beta", 0.9, "For n-grams: the share of the weight that the longest one takes.", low=0.0, high=1.0
        ),
        MODEL_DEFAULTS,
    ),
    view="token_graph",
    badge=lambda parameters: "equal to generate" if parameters["alpha"] == 0.0 else "deterministic",
    parts=lambda parameters: [
        Part("value", "anti-model", "A second model of the text so far: what it expects is penalised.")
    ],
    reads=lambda parameters: {"target": {Capability.HIDDEN_STATES}} if parameters["form"] == "states" else {},
)
def fsd(lane: Lane) -> Iterator[None]:
    """Greedy, but penalizes tokens that n-grams of the text so far already predict.

    Of the top_k most likely tokens the best `x = argmax_v (1 - alpha) p(v) - alpha pen(v)` is taken. The
    penalty depends only on the text so far, prompt included, and costs no forward.

    1. Form `n-grams`: the tokens that followed the newest n - 1 tokens are counted, then those that followed
       the newest n - 2, down to the empty context. A context that v has followed adds `R beta count / (total
       + 1)` to pen(v) and leaves `R (1 - beta)` to the shorter ones, where R is 1 at first; a context that v
       never followed is skipped. The empty context adds `R count / total`.
    2. Form `states`: the newest n - 1 hidden states of the last layer, side by side, are compared with those
       at every earlier position. `pen(v)` is the largest cosine with a position that v followed, but at least
       0.
    """
    scorer, form, alpha = lane.scorers["target"], lane.parameters["form"], lane.parameters["alpha"]
    n, text, in_states = (
        max(2, lane.parameters["n"] or USUAL[form]),
        lane.tree.text(lane.tip),
        form == "states",
    )
    memory: NGrams | States
    if in_states:
        memory = States(text, n)
        remember_prompt(lane, memory)
    else:
        memory = NGrams(text, n, lane.parameters["beta"])
    while lane.more:
        logits = lane.score([lane.tip], hidden=in_states)
        target = lane.distribution([lane.tip], logits)[0]  # [V]
        if in_states:
            memory.see(scorer.hidden(lane.tip))
        left = processed(lane, logits, target)
        if left is None:
            return
        candidates = likeliest(lane, left[1], lane.parameters["top_k"], target)
        scores = []
        for candidate in candidates:
            penalty = memory.penalty(candidate.token)
            total = (1 - alpha) * candidate.p - alpha * penalty
            scores.append((total, {"p": candidate.p, "penalty": penalty}))
        memory.visit(take_best(lane, ScoreName.FSD, candidates, scores, because).token)
        yield


def remember_prompt(lane: Lane, memory: States) -> None:
    """Reads the prompt and stores the states of all its places but the last, which the loop adds."""
    before = list(range(lane.tree.trunk - 1))
    lane.score([*before, lane.tip], hidden=True)
    for node in before:
        memory.see(lane.scorers["target"].hidden(node))
    lane.scorers["target"].forget(before)


def because(rank: int, count: int, parts: Parts) -> str:
    """Why a candidate was not taken, in a sentence."""
    return f"rank {rank} of {count}: p {parts['p']:.3f}, penalty {parts['penalty']:.3f}"
