"""Hides a message in ordinary samples: they follow the model's distribution, and a reader can decode the
message.

Ebrahimi, Chen and Khisti (2024), Minimum Entropy Coupling with Bottleneck, with the iterative coupling of
Sokota et al. (2022) over the tokens of a text. The code and the couplings are in minimum_entropy_coupling.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.logits.distributions import one_hot, probabilities
from decoders.parameters import choice, free_text, real, reals
from decoders.registry import strategy
from decoders.sampling.coupling.minimum_entropy_coupling import (
    ENCODERS,
    MAX_FOR_EXACT,
    Coupling,
    coupled,
    encoder,
    entropy,
)
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sample import sample
from decoders.sampling.sampling_parameters import PROCESSORS, SHAPING
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHOWN = 6  # most likely tokens whose columns of a coupling are recorded
ENCODER_SUMMARIES = {
    "greedy": "Merges the two rarest or the two most frequent letters until the budget is met.",
    "exact": "The best of all ways to merge letters.",
    "between": "Spends the budget to the last bit: a letter is sent in one of two ways, at random.",
}


@dataclass(frozen=True)
class Code:
    """What sender and reader both know: the letters, and the joint distribution [X, T] of a letter and the
    symbol that is sent for it.
    """

    letters: str
    joint: torch.Tensor

    @classmethod
    def of(cls, parameters: dict) -> "Code":
        """The code that the parameters describe."""
        weights = torch.tensor(parameters["weights"], dtype=torch.float64)
        joint = encoder(weights / weights.sum(), parameters["bits"], parameters["encoder"])
        return cls(LETTERS[: len(weights)], joint)

    @property
    def prior(self) -> list[float]:
        """p_T: how often each symbol is sent."""
        return self.joint.sum(0).tolist()

    def sign(self, t: int) -> str:
        """A symbol's name: the letters that it may stand for."""
        return "".join(letter for letter, p in zip(self.letters, self.joint[:, t], strict=True) if p > 0)

    def read(self, belief: list[float]) -> str:
        """The most likely letter of the most likely symbol."""
        return self.letters[int(self.joint[:, max(range(len(belief)), key=belief.__getitem__)].argmax())]

    def says(self) -> str:
        """The code in a sentence."""
        signs = ", ".join(self.sign(t) for t in range(self.joint.shape[1]))
        source, budget = entropy(self.joint.sum(1)), entropy(self.joint.sum(0))
        return f"A letter holds {source:.2f} bits; it is sent as one of {signs}: {budget:.2f} bits."


def unusable(parameters: dict) -> str | None:
    """The message to show if there is no such code, or the text has other letters."""
    count = len(parameters["weights"])
    if not 2 <= count <= len(LETTERS):
        return f"weights needs a number for each of 2 to {len(LETTERS)} letters, not {count}."
    if parameters["encoder"] == "exact" and count > MAX_FOR_EXACT:
        return f"The exact encoder tries all maps of up to {MAX_FOR_EXACT} letters, not {count}; use greedy."
    if other := set(parameters["message"]) - set(LETTERS[:count]):
        return (
            f"The message may have the letters {LETTERS[0]} to {LETTERS[count - 1]}, one for each of the "
            f"weights, but not {sorted(other)[0]!r}."
        )
    return None


def badge(parameters: dict) -> str:
    """With a random message the text has exactly the model's distribution; with a given one only on average
    over messages.
    """
    if parameters["temperature"] == 0.0:
        return "equal to generate"
    return "exact over messages" if parameters["message"] else "exact in distribution"


@strategy(
    name="coupling",
    title="Hidden message (coupling)",
    family="sampling",
    parameters=(
        free_text("message", "", "Letters to hide, such as abba; empty: each is drawn."),
        reals("weights", [8, 4, 2, 1, 1], "How frequent the letters a, b, c, … are.", low=1e-6, high=1e6),
        real(
            "bits",
            8.0,
            "Budget per letter: the entropy of the symbols that are sent is at most this.",
            low=0.0,
            high=8.0,
        ),
        choice("encoder", "greedy", "How letters are encoded as symbols.", ENCODERS),
        real(
            "confidence",
            0.95,
            "How certain the reader must be before the next letter begins.",
            low=0.5,
            high=0.9999,
        ),
        *SHAPING,
    ),
    papers=("minimum-entropy-coupling-with-bottleneck",),
    together=unusable,
    view="belief",
    badge=badge,
    parts=lambda parameters: [
        PROCESSORS,
        Part("encoder", parameters["encoder"], ENCODER_SUMMARIES[parameters["encoder"]]),
        Part("coupling", "greedy", "The largest mass left on either side goes into one cell, and so on."),
    ],
)
def coupling(lane: Lane) -> Iterator[None]:
    """Hides letters in ordinary samples: a reader with the same model decodes them, others notice nothing.

    1. A letter X is encoded as a symbol T with `H(T) <= bits`: letters are merged until the budget is met,
       so that I(X; T) stays large. With bits to spare every letter has a symbol of its own.
    2. The reader's belief over symbols begins at `p_T`. At each token the belief is coupled with the model's
       distribution q: repeatedly, the largest remaining mass of the belief and the largest of q share a cell.
       The table's marginals are the belief and q, and its entropy is low.
    3. The token is drawn from the row of the symbol being sent, `J(t, y) / b(t)`. Both sides set the belief
       to the drawn token's column, `b(t) = J(t, y) / q(y)`.
    4. Once the belief in one symbol reaches `confidence`, the reader takes its most likely letter, and the
       next letter begins.

    Averaged over messages whose letters are as frequent as the weights say, every token has exactly the
    distribution q; for one given message it does not. Once a given message has been sent, the text continues
    as an ordinary sample. At temperature 0 the distribution has only one token, and nothing can be hidden.
    """
    code, sent, read = Code.of(lane.parameters), "", ""
    lane.note(code.says())
    while lane.more:
        letter = next_letter(lane, code, len(sent))
        if letter is None:
            break
        t = lane.chooser.categorical(code.joint[letter], ("sign", len(sent))).value
        sent += code.letters[letter]
        belief = yield from hide(lane, code, t)
        if belief is None:
            return
        read += code.read(belief)
        right = float(sent[-1] == read[-1])
        lane.record_measure(
            lane.tip, ScoreName.LETTER, max(belief), level=f"{sent[-1]} → {read[-1]}", right=right
        )
        lane.note(f"Letter {len(sent)}: {sent[-1]} is sent, {read[-1]} is read, belief {max(belief):.2f}.")
        yield
    lane.note(f"Sent {sent}, read {read}: {matches(sent, read)} of {len(sent)} letters are right.")
    yield from sample(lane)


def matches(sent: str, read: str) -> int:
    """How many letters were read as they were sent."""
    return sum(a == b for a, b in zip(sent, read, strict=True))


def next_letter(lane: Lane, code: Code, number: int) -> int | None:
    """The number of the letter to be sent: of the message, or drawn; None after the message."""
    if not (message := lane.parameters["message"]):
        return lane.chooser.categorical(code.joint.sum(1), ("letter", number)).value
    return code.letters.index(message[number]) if number < len(message) else None


def hide(lane: Lane, code: Code, t: int) -> Iterator[None]:
    """Writes tokens that encode symbol t, one step for each but the last; returns the reader's belief after
    them. None, and the lane ends with a message, if the processors leave no token.
    """
    belief = code.prior
    believe(lane, lane.tip, code, t, belief)
    while True:
        logits = lane.score([lane.tip])
        offered = target = lane.distribution([lane.tip], logits)[0]
        processed = lane.process(logits, [lane.tip], record=True)
        if not processed.isfinite().any():
            lane.ended_by = NOTHING_LEFT
            return None
        if processed is not logits:
            offered = lane.distribution([lane.tip], processed, view="processed")[0]
        probs = one_hot(processed) if lane.parameters["temperature"] == 0.0 else probabilities(processed)
        belief = send(lane, code, t, belief, probs[0].cpu(), offered, target)
        if max(belief) >= lane.parameters["confidence"] or not lane.more:
            return belief
        yield


def send(
    lane: Lane,
    code: Code,
    t: int,
    belief: list[float],
    q: torch.Tensor,
    offered: torch.Tensor,
    target: torch.Tensor,
) -> list[float]:
    """Commits one token, drawn from the row of `t` in the coupling of the belief with q [V]; returns the
    belief after it. offered [V]: log q; target [V]: the model's own log-probabilities, for the record.
    """
    table = coupled(belief, q.tolist())
    token, u = lane.chooser.categorical(table.row(t), ("sample", lane.tree.depths[lane.tip] + 1))
    node = propose_with_columns(lane, code, table, q, offered, token)
    if u is not None:
        lane.record_measure(node, ScoreName.DRAW_FROM_ROW, u, p=table.column(token)[t] / belief[t])
    after = table.column(token)
    after = [mass / math.fsum(after) for mass in after]
    believe(lane, node, code, t, after)
    lane.commit([node], [float(target[token])])
    return after


def believe(lane: Lane, node: int, code: Code, t: int, belief: list[float]) -> None:
    """Records the reader's belief after this node, as a score of the symbol being sent with all others as
    parts.
    """
    named = {code.sign(k): b for k, b in enumerate(belief)}
    lane.record_measure(node, ScoreName.BELIEF, belief[t], level=code.sign(t), **named)


def propose_with_columns(
    lane: Lane, code: Code, table: Coupling, q: torch.Tensor, offered: torch.Tensor, token: int
) -> int:
    """Proposes the drawn token and the most likely others, each with its column of the coupling; returns the
    drawn one's node.
    """
    likeliest = [int(y) for y in q.topk(min(SHOWN, len(q))).indices if q[int(y)] > 0]
    drawn = -1
    for slot, y in enumerate(dict.fromkeys([*likeliest, token])):
        node = lane.propose(lane.tip, y, float(offered[y]), slot=slot)
        cells = {code.sign(k): mass for k, mass in enumerate(table.column(y)) if mass > 0.0}
        lane.record_measure(node, ScoreName.COUPLING, float(q[y]), **cells)
        if y == token:
            drawn = node
        else:
            lane.verdict(node, "never reached", reason="another token was drawn")
    return drawn
