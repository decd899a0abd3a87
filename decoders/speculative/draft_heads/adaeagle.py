"""AdaEAGLE: EAGLE's layer drafts a chain, as long as a small network expects to be accepted.

Zhang et al. (2024), AdaEAGLE. The network is heads/scorers/adaeagle.py, the layer
heads/feature_drafters/eagle.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from decoders.heads import AdaEagle
from decoders.lane import Lane
from decoders.parameters import choice, integer, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import with_drift
from decoders.speculative.draft_heads.eagle_like import EAGLE_SAYS
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_length import Length, chain
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head
from decoders.speculative.interfaces import Draft, Pair, Seen, Verification
from decoders.trace.scores import ScoreName

TRAINED, FIXED_LENGTH = "trained", "fixed length"
MISSING = (
    "No length predictor comes with the project for {!r}: every chain may have num_assistant_tokens tokens."
)
JOINT_STOP = -0.6  # nats; section 4.5


@dataclass
class Prediction:
    """One lane's predictor: the target's state [d] in front of the newest token, and the expected length."""

    parameters: dict
    state: torch.Tensor | None = None
    expected: int = 0

    def max_tokens(self, lane: Lane) -> int:
        """The maximum for the coming round; records the expected length."""
        max_length, head = (
            self.parameters["num_assistant_tokens"],
            predictor_of(self.parameters, lane.models["target"]),
        )
        self.expected = max_length
        if head is not None and self.state is not None:
            value = head.length(self.state, lane.tree.tokens[lane.tip])
            self.expected = min(max_length, max(0, round(value)))
            lane.record_measure(lane.tip, ScoreName.EXPECTED_LENGTH, value, drafted=float(self.expected))
        return max_length if self.parameters["joint_stop"] else self.expected

    def enough(self, lane: Lane, draft: Draft, nodes: list[int]) -> bool:
        """With the joint stop: whether the expected length is reached and the chain has become unlikely."""
        if not self.parameters["joint_stop"] or len(nodes) < self.expected:
            return False
        sure = torch.tensor([draft.probability[n] for n in nodes]).log().sum()
        return bool(sure < JOINT_STOP)

    def see(self, draft: Draft, verification: Verification, seen: Seen) -> None:
        """Keeps the state from which the target's own token was chosen."""
        last = verification.path[-1] if verification.path else draft.root
        if verification.token is not None:
            self.state = seen.hidden[seen.nodes.index(last)]


def predictor_of(parameters: dict, target: Any) -> AdaEagle | None:
    """The target's length predictor, unless none is wanted or there is none."""
    return target.heads.get("adaeagle") if parameters["predictor"] == TRAINED else None


def adaeagle_pair(parameters: dict) -> Pair:
    """A chain of the expected length; greedy match at temperature 0, else token rejection."""
    prediction = Prediction(parameters)
    length = Length(
        prediction.max_tokens, "As many as a small network expects to be accepted.", prediction.enough
    )
    shape = chain(length, parameters["temperature"])
    inner = with_drift(head_of_kind("eagle"), shape, "a feature drafter", EAGLE_SAYS)

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        prediction.see(draft, verification, seen)
        inner.observe(lane, draft, verification, seen)

    return simplest(replace(inner, observe=observe), parameters["temperature"])


@draft_and_verify(
    adaeagle_pair,
    name="adaeagle",
    title="AdaEAGLE",
    parameters=(
        integer("num_assistant_tokens", 6, "Maximum length of a chain in tokens.", low=1, high=32),
        choice(
            "predictor",
            TRAINED,
            "What decides the length of a chain: the trained network, or nothing.",
            (TRAINED, FIXED_LENGTH),
        ),
        switch(
            "joint_stop",
            False,
            "End a chain only if its log-probability has also fallen below -0.6.",
        ),
        *GREEDY,
    ),
    papers=("adaeagle",),
    suits=needs_head("eagle", "EAGLE layer"),
)
def adaeagle(lane: Lane) -> Iterator[None]:
    """EAGLE's layer drafts a chain as long as a small network expects to be accepted.

    1. The target has chosen the newest token. Before anything is drafted, a network of three residual blocks
       reads that token and the target's state before it, and predicts how many drafted tokens will be
       accepted. Rounded, that is the length of the chain; 0 means a plain step of the target.
    2. EAGLE's layer drafts that many tokens, one pass each.
    3. The target verifies them in one forward, as in speculative decoding.

    The length depends on nothing that is drafted, so drawn drafts stay exact. With joint_stop a chain
    continues beyond the expected length until its log-probability is below -0.6; the token with which it
    falls below is submitted as well.

    The network was trained along greedy texts of llama-tiny; its label is how many of EAGLE's best tokens in
    a row match the text, and underestimates count twice in the loss. Where no such network comes with the
    target, every chain has num_assistant_tokens tokens, and the lane says so. No code was published.
    """
    if (
        lane.parameters["predictor"] == TRAINED
        and predictor_of(lane.parameters, lane.models["target"]) is None
    ):
        lane.note(MISSING.format(lane.models["target"].name))
    drafter, verifier = adaeagle_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
