"""Momentum decoding: the text as a walk on a graph of tokens that resists going in circles.

Lan et al. (2022), "Momentum Decoding: Open-ended Text Generation As Graph Exploration". The table of
resistances is the paper's; the released code has another one, which only blocks 4-grams and is the choice
"block 4-grams" here.
"""

import math
from collections.abc import Callable, Iterator

from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.candidates import Parts, likeliest, take_best
from decoders.sampling.next_token import processed
from decoders.sampling.sampling_parameters import MODEL_DEFAULTS
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

LONGEST = 5  # longer repetitions count as this long
# The resistance to a candidate that makes a run of m repeated tokens, for m = 0 ... LONGEST.
RESISTANCES: dict[str, Callable[[int], float]] = {
    "linear": float,
    "constant": lambda m: 2.0,
    "logarithmic": lambda m: math.log(1 + m) / math.log(6) / 0.2,
    "exponential": lambda m: 1.5**m / 2,
    "block 4-grams": lambda m: 5.0 if m >= 4 else 0.0,
}


class Graph:
    """The walk so far: its tokens, and every run of up to LONGEST tokens in it."""

    def __init__(self, text: list[int]):
        self.text: list[int] = []
        self.ways: set[tuple[int, ...]] = set()
        for token in text:
            self.visit(token)

    def visit(self, token: int) -> None:
        """Walks on to `token`."""
        self.text.append(token)
        self.ways.update(tuple(self.text[-n:]) for n in range(1, min(LONGEST, len(self.text)) + 1))

    def run(self, token: int) -> int:
        """The length of the repeated run if `token` came next; 0 if it is new."""
        if (token,) not in self.ways:
            return 0
        longer = range(min(LONGEST, len(self.text) + 1), 1, -1)
        return next((n for n in longer if (*self.text[len(self.text) - n + 1 :], token) in self.ways), 1)


@strategy(
    name="momentum",
    title="Momentum decoding",
    family="sampling",
    papers=("momentum-decoding",),
    parameters=(
        integer("top_k", 5, "Candidates at each position; 1 is greedy.", low=1, high=64),
        real("alpha", 0.2, "Weight of the resistance; 0 is greedy.", low=0.0, high=1.0),
        choice(
            "resistance", "linear", "How the resistance grows with the length of the repetition.", RESISTANCES
        ),
        MODEL_DEFAULTS,
    ),
    view="token_graph",
    badge=lambda parameters: "equal to generate" if parameters["alpha"] == 0.0 else "deterministic",
    parts=lambda parameters: [
        Part("value", "resistance", "Grows with the number of tokens in a row that would be repeated.")
    ],
)
def momentum(lane: Lane) -> Iterator[None]:
    """Greedy, but a token that repeats the text's own path must be much more likely than the others.

    The text so far, prompt included, is a walk on a graph whose nodes are tokens. A token that is new costs
    nothing. One that leads back into the graph meets a resistance that grows with the length of the
    repetition:

    1. Each candidate has a run length m: 0 if the token is new; otherwise how many of the last tokens, the
       candidate included, have occurred in this order before, 1 to 5.
    2. Of the top_k most likely, the best `x = argmax_v p(v) - alpha f(m_v)` is taken. f is 0 for a new token,
       else m (`linear`); `resistance` offers other functions.

    The most likely token always wins if it is new. Each token takes one forward; nothing is drawn, and there
    is no look-ahead.
    """
    alpha, top_k = lane.parameters["alpha"], lane.parameters["top_k"]
    resistance = RESISTANCES[lane.parameters["resistance"]]
    graph = Graph(lane.tree.text(lane.tip))
    while lane.more:
        logits = lane.score([lane.tip])
        target = lane.distribution([lane.tip], logits)[0]  # [V]
        left = processed(lane, logits, target)
        if left is None:
            return
        candidates = likeliest(lane, left[1], top_k, target)
        scores = []
        for candidate in candidates:
            run = graph.run(candidate.token)
            resisted = alpha * resistance(run) if run else 0.0
            parts = {"p": candidate.p, "run": run, "resistance": resisted}
            scores.append((candidate.p - resisted, parts))
        graph.visit(take_best(lane, ScoreName.MOMENTUM, candidates, scores, because).token)
        yield


def because(rank: int, count: int, parts: Parts) -> str:
    """Why a candidate was not taken, in a sentence."""
    words = f"rank {rank} of {count}: p {parts['p']:.3f}"
    if not parts["run"]:
        return f"{words}, a new token"
    repeated = "leads back into the text" if parts["run"] == 1 else f"repeats {parts['run']} tokens"
    return f"{words} − resistance {parts['resistance']:.3f}: it {repeated}"
