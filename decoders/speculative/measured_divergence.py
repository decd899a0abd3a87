"""How far a relaxed verifier is from the target: measured at every position that it tested, while it runs.

The distance is total variation, half the sum of |distribution - p|: 0 is lossless, 1 the maximum.
"""

from decoders.lane import Lane
from decoders.speculative.interfaces import Verification, Verifier, VerifierInput
from decoders.trace.number_format import number
from decoders.trace.scores import ScoreName


class Divergence:
    """Records, for one run, the distance at each position and after each round the mean so far."""

    def __init__(self, verifier: Verifier):
        self.distribution = None if verifier.exact_for else verifier.distribution
        self.divergence_estimate = None if verifier.exact_for else verifier.divergence_estimate
        self.places, self.sum = 0, 0.0

    def record(self, lane: Lane, inputs: VerifierInput, verification: Verification) -> None:
        """Records a score for each position where a drafted token was tested, and a note; nothing if the
        verifier is exact.
        """
        if self.distribution is None and self.divergence_estimate is None:
            return
        tested = [n for n in (inputs.draft.root, *verification.path) if inputs.children(n)]
        for node in tested:
            distance = self.distance(inputs, verification, node)
            self.places, self.sum = self.places + 1, self.sum + distance
            lane.record_measure(node, ScoreName.TOTAL_VARIATION, distance)
        if not tested:
            return
        if lane.parameters["temperature"] == 0.0:
            lane.note(
                f"Lossy: {self.sum:.0f} of {self.places} positions tested so far hold a token other than "
                "the target's most likely one."
            )
        else:
            lane.note(
                f"Lossy: at the {self.places} positions tested so far, the mean total variation from the "
                f"target's distribution is {number(self.sum / self.places)}"
                f"{'; an estimate from the drafted tokens' if self.divergence_estimate else ''}."
            )

    def distance(self, inputs: VerifierInput, verification: Verification, node: int) -> float:
        """Total variation between the distribution of the token after `node`, given the text so far, and p.

        Where the draft was not drawn, the token is either the drafted one for certain or a draw from p.
        """
        p = inputs.p[node]
        if node in inputs.draft.q and self.divergence_estimate:
            return self.divergence_estimate(inputs, node)
        if node in inputs.draft.q:
            return float((self.distribution(inputs, node) - p).abs().sum()) / 2
        kept = [n for n in inputs.children(node) if n in verification.path]
        return 1.0 - float(p[inputs.tokens[kept[0]]]) if kept else 0.0
