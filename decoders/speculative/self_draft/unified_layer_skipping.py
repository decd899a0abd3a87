"""Unified Layer Skipping: every new token runs through the same evenly spaced layers.

Liu et al. (2024), Accelerating Inference in Large Language Models with a Unified Layer Skipping Strategy. How
many layers are kept follows from the desired speed-up alone. Lossy, unless all layers verify what some of
them wrote.
"""

from collections.abc import Iterator

from decoders.engine.layers import Layers
from decoders.lane import Lane
from decoders.logits.distributions import probabilities
from decoders.parameters import integer, real, switch
from decoders.sampling.sampling_parameters import GREEDY, PROCESSORS
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import Pair, badge, described
from decoders.speculative.self_draft.early_layers import depth_of, self_drafted
from decoders.strategy import Part

WHOLE = "whole"  # the scorer that runs all layers, only to show what they predict


def kept(total: int, speedup: float) -> list[int]:
    """The layers that run (from 0): total / speedup of them, but at least two; the first, the last, and
    between them, from below, the multiples of one interval.
    """
    count = max(2, int(total / speedup))
    if count >= total:
        return list(range(total))
    interval = total // (count - 1)
    return [*range(0, interval * (count - 1), interval), total - 1]


def layers_of(lane: Lane) -> Layers:
    """The layers that the lane keeps."""
    total = depth_of(lane.models["target"])
    return Layers.only(kept(total, lane.parameters["speedup"]), total)


def unified_layer_skipping_pair(parameters: dict) -> Pair:
    """Where drafts are checked: a chain from the kept layers, greedy match or token rejection."""
    temperature = parameters["temperature"]
    says = "Evenly spaced layers of the target guess, one pass per token."
    shape = widths([1] * parameters["num_assistant_tokens"], temperature)
    return simplest(self_drafted(layers_of, shape, "evenly spaced layers", says), temperature)


def promise(parameters: dict) -> str:
    """What the text promises: nothing where layers are skipped and no verification follows."""
    if parameters["checked"]:
        return badge(*unified_layer_skipping_pair(parameters), parameters["temperature"])
    if parameters["speedup"] > 1.0:
        return "relaxed"
    return "lossless: equal to greedy" if parameters["temperature"] == 0.0 else "exact in distribution"


def layers_and_checks(parameters: dict) -> list[Part]:
    """Its parts, for its card."""
    if parameters["checked"]:
        return described(*unified_layer_skipping_pair(parameters))
    says = "Keeps the first layer, the last, and evenly spaced ones between, as many as the speed-up allows."
    return [Part("layers", "evenly spaced layers", says), PROCESSORS]


@draft_and_verify(
    unified_layer_skipping_pair,
    name="unified_layer_skipping",
    title="Unified Layer Skipping",
    parameters=(
        real("speedup", 2.0, "One in this many layers is kept.", low=1.0, high=100.0),
        switch("checked", False, "All layers verify what the kept ones draft: exact."),
        integer("num_assistant_tokens", 4, "If checked: tokens drafted per round.", low=1, high=32),
        *GREEDY,
    ),
    papers=("accelerating-inference-in-large-language-models-with",),
    view="layers",
    badge=promise,
    parts=layers_and_checks,
)
def unified_layer_skipping(lane: Lane) -> Iterator[None]:
    """Runs only evenly spaced layers for every new token: faster, but no longer the model's own text.

    1. Of L layers L / speedup are kept: the first, the last, and evenly spaced ones between them.
    2. All layers read the prompt and give the first token. From then on only the kept ones run, on the keys
       and values that all layers left of the prompt.
    3. A token is chosen from the distribution of the kept layers. The whole model's distribution for the same
       text is computed for the picture and for the log-probabilities; that costs time, but no forward of the
       method.

    The cost of a token does not depend on the token. A model that was not trained for it soon writes nonsense
    as speedup grows. With checked, the kept layers only draft and all layers verify, so the text is the
    target's.
    """
    if lane.parameters["checked"]:
        drafter, verifier = unified_layer_skipping_pair(lane.parameters)
        yield from rounds(lane, drafter, verifier)
        return
    greedy, part, prompt = lane.parameters["temperature"] == 0.0, layers_of(lane), lane.tip
    lane.note(f"All layers read the prompt; from then on {part} run.")
    lane.scorers[WHOLE] = lane.attach(lane.models["target"])
    while lane.more:
        tip = lane.tip
        if tip == prompt:
            logits = whole = lane.score([tip])  # [1, V]
        else:
            logits = lane.score([tip], layers=part)
            whole = lane.score([tip], "lens", role=WHOLE)
        target = lane.distribution([tip], whole)[0]
        scores = lane.process(logits, [tip])
        offered = target
        if scores is not whole:
            offered = lane.distribution([tip], scores, view="processed" if logits is whole else "draft")[0]
        if greedy:
            token = int(scores[0].argmax())
        else:
            token = lane.chooser.categorical(
                probabilities(scores)[0], ("sample", lane.tree.depths[tip] + 1)
            ).value
        node = lane.propose(tip, token, float(offered[token]))
        lane.commit([node], [float(target[token])])
        yield
