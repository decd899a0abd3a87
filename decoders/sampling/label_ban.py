"""Vulnerability-constrained decoding: keeps a model that labels flaws from writing the label.

Storhaug, Li and Hu (2023), Efficient Avoidance of Vulnerabilities in Auto-completed Smart Contract Code Using
Vulnerability-constrained Decoding. Only the model knows what the label means.
"""

import math
from collections.abc import Iterator, Sequence

from decoders.lane import Lane
from decoders.logits.processor_order import stages
from decoders.logits.token_constraints import sequences
from decoders.parameters import free_text, real, switch
from decoders.refusal import Refusal
from decoders.registry import strategy
from decoders.sampling.next_token import next_token
from decoders.sampling.sampling_parameters import GREEDY, PROCESSORS
from decoders.strategy import Part
from decoders.trace.number_format import number
from decoders.trace.scores import ScoreName


def unreadable(parameters: dict, target) -> str | None:
    """The message to show if the label cannot be written in this model's tokens."""
    try:
        labels_of(parameters, target)
    except Refusal as error:
        return str(error)
    return None


def labels_of(parameters: dict, target) -> list[list[int]]:
    """The token sequences of the label."""
    return sequences("label", parameters["label"], target.cut, target.engine.vocabulary)


def completing(labels: Sequence[Sequence[int]], text: Sequence[int]) -> list[int]:
    """The tokens that would complete a label after a text: the last token of each label whose others end the
    text.
    """
    whole = (label[-1] for label in labels if list(text[len(text) - len(label) + 1 :]) == list(label[:-1]))
    return sorted(set(whole))


@strategy(
    name="label_ban",
    title="Vulnerability-constrained decoding",
    family="sampling",
    parameters=(
        free_text("label", "<flaw>", "The label with which the model announces a flaw."),
        switch("ban", True, "Keep the model from writing the label; off: only watch it."),
        real(
            "threshold", 0.5, "A note warns when the label has at least this probability.", low=0.0, high=1.0
        ),
        *GREEDY,
    ),
    suits=unreadable,
    papers=("efficient-avoidance-of-vulnerabilities-in-auto-completed",),
    view="gutter",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        Part("constraint", "ban", "The last token of the label is impossible after the others.")
        if parameters["ban"]
        else Part("lens", "label", "The probability of the label, as a detector of flaws."),
        PROCESSORS,
    ],
)
def label_ban(lane: Lane) -> Iterator[None]:
    """Forbids the label with which a finetuned model announces a flaw, and records its probability.

    The model has learned to write the label in front of flawed lines. At every position its probability says
    how likely the model is to write a flaw next: a detector that writes nothing.

    1. The token that would complete the label is forbidden: its probability goes to all others in proportion,
       `p'(x) = p(x) / (1 - P(label))`.
    2. If the label has several tokens, only the last one is forbidden, and only after the others, so that
       these stay possible elsewhere.
    3. Then processors and the choice of a token are those of greedy decoding, or of sampling.

    A flaw can be written without the label, so the ban avoids only those flaws that would be announced. If
    the label has no probability, the ban leaves the text unchanged. Made for `llama-tiny-flaws`, which
    labels toy programs.
    """
    labels = labels_of(lane.parameters, lane.models["target"])
    banned, threshold = lane.parameters["ban"], lane.parameters["threshold"]
    while lane.more:
        tip = lane.tip
        logits = lane.score([tip])  # [1, V]
        target = offered = lane.distribution([tip], logits)[0]  # [V]
        tokens = completing(labels, lane.tree.text(tip)[lane.tree.trunk :])
        p = float(target[tokens].exp().sum()) if tokens else 0.0
        if p >= threshold:
            does = "it is forbidden" if banned else "it may be written"
            lane.note(
                f"The model is about to announce a flaw: the label has probability {number(p)}; {does}."
            )
        if banned and tokens:
            logits = logits.clone()
            logits[0, tokens] = -math.inf
            level = "ban" if stages(lane.shaping) else None
            offered = lane.distribution([tip], logits, "processed", level)[0]
        node = next_token(lane, logits, offered, target)
        if node is None:
            return
        lane.record_measure(node, ScoreName.P_LABEL, p, scale=1.0)
        yield
