"""Entropy adaptive decoding: a small model writes while it is confident, a large one elsewhere.

Entropy Adaptive Decoding: Dynamic Model Switching for Efficient Inference (2025). The draft model is the
small one. The authors published no code, so which model begins and how long each one stays active are
parameters.
"""

import math
from collections import deque
from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.logits.distributions import entropies, log_softmax
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.sampling.next_token import next_token
from decoders.sampling.sampling_parameters import GREEDY, PROCESSORS
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

LARGE, SMALL = "target", "draft"
WHOLE = "whole"  # the scorer that computes the target's probabilities only to show them


def entropy(logits: torch.Tensor) -> float:
    """The entropy in bits of a row of logits [1, V]."""
    return float(entropies(log_softmax(logits))[0]) / math.log(2)


class Switch:
    """Which model writes the next token: the mean entropy of the last tokens against tau."""

    def __init__(self, active: str, tau: float, window: int, stay: int):
        self.active, self.tau, self.stay = active, tau, stay
        self.recent: deque[float] = deque(maxlen=window)
        self.since: int | None = None  # tokens since the last switch; None before the first

    def update(self, bits: float) -> float:
        """Adds the entropy in bits of the row from which the active model wrote a token, and switches models
        if due. Returns the rolling mean.
        """
        self.recent.append(bits)
        mean = math.fsum(self.recent) / len(self.recent)
        self.since = None if self.since is None else self.since + 1
        wanted = LARGE if mean > self.tau else SMALL
        if wanted != self.active and (self.since is None or self.since >= self.stay):
            self.active, self.since = wanted, 0
        return mean


class Readers:
    """How far each model has read, and how many tokens that cost."""

    def __init__(self) -> None:
        self.reached: dict[str, int] = {}  # role -> depth of the last place that it has read
        self.read = {LARGE: 0, SMALL: 0}
        self.wrote = {LARGE: 0, SMALL: 0}

    def row(self, lane: Lane, role: str) -> torch.Tensor:
        """One model's row [1, V] after the tip; the same forward reads whatever the other model has
        written.
        """
        depth = lane.tree.depths[lane.tip]
        unread = depth - self.reached.get(role, -1)
        self.reached[role] = depth
        self.read[role] += unread
        self.wrote[role] += 1
        return lane.score([lane.tip], "prefill" if unread > 1 else "decode", role)

    def sentence(self, lane: Lane) -> str:
        """The note on the cost: tokens read times the parameters of the model that read them."""
        written = sum(self.wrote.values())
        summary = f"The target wrote {self.wrote[LARGE]} of {many(written, 'token')}"
        sizes = {role: size(model) for role, model in lane.models.items()}
        if None in sizes.values():
            return f"{summary}."
        alone = (lane.tree.depths[lane.tip]) * sizes[LARGE]
        paid = sum(self.read[role] * sizes[role] for role in self.read)
        return (
            f"{summary}; tokens read, each times its model's parameters, come to {100 * paid / alone:.0f} % "
            "of what the target alone would have read, prompt and catching up included."
        )


def size(model) -> int | None:
    """A model's number of parameters; None for a table."""
    module = getattr(model, "model", None)
    return None if module is None else sum(p.numel() for p in module.parameters())


@strategy(
    name="ead",
    title="Entropy adaptive decoding",
    family="sampling",
    needs=("target", "draft"),
    papers=("entropy-adaptive-decoding",),
    parameters=(
        real(
            "tau", 1.5, "Mean entropy in bits above which the target writes; −1: always.", low=-1.0, high=20.0
        ),
        integer("window", 5, "Number of recent tokens whose entropies are averaged.", low=1, high=100),
        integer(
            "stay", 10, "After a switch the new model writes at least this many tokens.", low=0, high=1000
        ),
        choice("begin_with", LARGE, "The model that writes first.", (LARGE, SMALL)),
        *GREEDY,
    ),
    view="threshold",
    badge=lambda parameters: "relaxed",
    parts=lambda parameters: [
        Part(
            "schedule", "rolling entropy", "The mean entropy of the last tokens decides which model writes."
        ),
        PROCESSORS,
    ],
)
def ead(lane: Lane) -> Iterator[None]:
    """The draft writes while its entropy is low, the target elsewhere; the draft's tokens are not verified.

    1. The model whose turn it is gives the next distribution, with the entropy `H = -Σ p log₂ p`. Then
       processors reshape it; the token is drawn, or is the most likely one at temperature 0.
    2. The mean of the last `window` entropies decides who continues: above tau the target, else the draft;
       but not before `stay` tokens have come since the last switch.
    3. The model that takes over first reads what the other has written, in one forward; what it read before
       stays in its cache.

    The text is neither model's own. The target's probabilities of the draft's tokens are computed for the
    picture and for the log-probabilities; these forwards take time, but they are not part of the method.
    """
    parameters = lane.parameters
    switch = Switch(parameters["begin_with"], parameters["tau"], parameters["window"], parameters["stay"])
    readers = Readers()
    lane.scorers[WHOLE] = lane.attach(lane.models[LARGE])
    while lane.more:
        role = switch.active
        logits = readers.row(lane, role)  # [1, V]
        if role == LARGE:
            offered = target = lane.distribution([lane.tip], logits)[0]
        else:
            target = lane.distribution([lane.tip], lane.score([lane.tip], "lens", WHOLE))[0]
            offered = lane.distribution([lane.tip], logits, "draft")[0]
        node = next_token(lane, logits, offered, target, "target" if role == LARGE else "small")
        if node is None:
            return
        bits = entropy(logits)
        mean = switch.update(bits)
        lane.record_measure(node, ScoreName.ROLLING_ENTROPY, mean, level=role, entropy=bits, limit=switch.tau)
        if switch.active != role and lane.more:
            lane.note(f"Mean entropy {mean:.2f} bits: the {switch.active} continues.")
        if not lane.more:
            lane.note(readers.sentence(lane))
        yield
