"""Source of guesses: a draft model that may be left after some of its layers, the earlier the surer it is.

Knows the lane's draft model and how its scorer reads a part of the layers; nothing of the target.
"""

import torch

from decoders.engine.partial_forward import Layers
from decoders.lane import Lane
from decoders.models import catalog
from decoders.speculative.drafters.fixed_trees import likeliest, open_ends
from decoders.speculative.interfaces import FIXED, Draft, Drafter

EXIT = "exit {}"  # level of the scores that say how sure an exit is


def exits_of(draft) -> list[int]:
    """After how many layers a draft can be left, all of them last: as it was trained, else after thirds of
    its layers.
    """
    layers = draft.engine.layer_count
    thirds = [max(1, round(layers * part / 3)) for part in (1, 2)]
    return sorted({*(catalog.exits(draft.name) or thirds), layers})


def guessed(lane: Lane, node: int, exits: list[int], thresholds: list[float]) -> torch.Tensor:
    """Processed scores [1, V] after a node from the first exit whose likeliest token has more than its
    threshold, the last one always. What stopped before a deeper exit, here or at earlier tokens, goes through
    the layers that it lacks (lazy keys and values).
    """
    scorer, total = lane.scorers["draft"], lane.models["draft"].engine.layer_count
    if node < lane.tree.trunk:  # the prompt: by all layers
        return lane.process(lane.score([node], "draft", role="draft"), [node])
    logits = lane.score([node], "draft", role="draft", layers=Layers.first(exits[0], total))
    for at, exit in enumerate(exits):
        while scorer.layers_read(node) < exit:
            logits = lane.run_forward(lambda s, exit=exit: s.deepen(node, exit), "draft", role="draft")
        scores = lane.process(logits[-1:], [node])
        sure, last = float(scores.softmax(-1).max()), exit == exits[-1]
        limit = 0.0 if last else thresholds[at]
        lane.record_score(node, "confidence", sure, level=EXIT.format(exit), limit=limit)
        if last or sure > limit:
            break
    return scores


def sorted_chain(parameters: dict) -> Drafter:
    """A chain of the likeliest tokens of nested drafts, `num_assistant_tokens` long."""
    thresholds = [parameters["threshold_1"], parameters["threshold_2"]]

    def propose(lane: Lane) -> Draft:
        draft, node = Draft(lane.tip), lane.tip
        exits = exits_of(lane.models["draft"])
        for _ in range(min(parameters["num_assistant_tokens"], lane.left - 1)):
            scores = guessed(lane, node, exits, [*thresholds, *[0.0] * len(exits)])
            draft.scores[node] = scores[0]
            (node,) = likeliest(lane, draft, [node], scores, [1])
            if not open_ends(lane, [node]):
                break
        return draft

    says = "One draft with several exits guesses, each token from the first exit that is sure enough."
    return Drafter(propose, FIXED, "draft", name="chain from sorted exits of a draft model", says=says)
