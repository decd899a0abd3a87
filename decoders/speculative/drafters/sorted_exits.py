"""Source of guesses: a draft model with early exits, which it takes as soon as it is confident."""

import torch

from decoders.engine.layers import Layers
from decoders.lane import Lane
from decoders.models import catalog
from decoders.models.names import shipped_name
from decoders.speculative.drafters.dynamic_trees import expand_and_rerank
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import Drafter, Source, drafted
from decoders.trace.scores import ScoreName

CHAIN, TREE = "chain", "expand and rerank"
EXIT = "exit {}"  # level of the scores that say how sure an exit is


def exits_of(draft) -> list[int]:
    """The layers after which a draft can exit, the last one included: as it was trained, else each third of
    them.
    """
    layers = draft.engine.layer_count
    thirds = [max(1, round(layers * part / 3)) for part in (1, 2)]
    return sorted({*(catalog.exits(shipped_name(draft.name)) or thirds), layers})


def guessed(lane: Lane, nodes: list[int], exits: list[int], thresholds: list[float]) -> torch.Tensor:
    """Processed scores [N, V] after nodes that stand side by side, from the first exit at which the most
    likely token of one of them exceeds the exit's threshold, else from the last exit. Tokens that left at an
    earlier exit, here or before, then run through the layers that they lack (lazy keys and values).
    """
    scorer, total = lane.scorers["draft"], lane.models["draft"].engine.layer_count
    if nodes[0] < lane.tree.trunk:  # the prompt: by all layers
        return lane.process(lane.score(nodes, "draft", role="draft"), nodes)
    logits = lane.score(nodes, "draft", role="draft", layers=Layers.first(exits[0], total))
    for at, exit in enumerate(exits):
        while min(map(scorer.layers_read, nodes)) < exit:
            logits = lane.run_forward(lambda s, exit=exit: s.deepen(nodes, exit), "draft", role="draft")
        scores = lane.process(logits, nodes)
        sure, last = scores.softmax(-1).amax(-1).tolist(), exit == exits[-1]
        limit = 0.0 if last else thresholds[at]
        beside = {"surest": max(sure)} if len(nodes) > 1 else {}
        for node, one in zip(nodes, sure, strict=True):
            lane.record_measure(
                node, ScoreName.CONFIDENCE, one, level=EXIT.format(exit), limit=limit, **beside
            )
        if last or max(sure) > limit:
            break
    return scores


def sorted_exits(parameters: dict) -> Drafter:
    """The most likely tokens of nested drafts, as a chain or as the tree that the paper's authors published;
    `num_assistant_tokens` levels of them.
    """
    depth, limits = parameters["num_assistant_tokens"], (parameters["threshold_1"], parameters["threshold_2"])

    def scores(lane: Lane, nodes: list[int]) -> torch.Tensor:
        exits = exits_of(lane.models["draft"])
        return guessed(lane, nodes, exits, [*limits, *[0.0] * len(exits)])

    says = "One draft with several exits guesses, each level from the first exit that is confident enough."
    source = Source(scores, "sorted exits of a draft model", says, ("draft",))
    if parameters["tree"] == TREE:
        return drafted(source, expand_and_rerank(parameters["width"], depth, parameters["nodes"]))
    return drafted(source, widths([1] * depth, 0.0))
