"""Learn2PD with EoTP: a small trained filter says which tokens are final already, and the canvas is cut
after the end of the text as soon as one is predicted.

Learning to Parallel: Accelerating Diffusion Large Language Models via Adaptive Parallel Decoding (2025).
Written from a public re-implementation of the decoding; the authors' training code was not available.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from decoders.diffusion.canvas import Canvas, Guess, blocks, denoise, fill, guess
from decoders.diffusion.denoising_loop import canvas_of, schedule
from decoders.diffusion.unmask_policies import quota
from decoders.lane import Lane
from decoders.parameters import choice, integer, real, switch
from decoders.registry import strategy
from decoders.strategy import Part

FILTERS = {
    "learned": "A small network reads the confidences of the block and says which positions are final.",
    "confidence": "Accepts each token whose own probability is above theta.",
    "oracle": "Knows the text that one token per forward gives, and accepts each token that is the same "
    "there.",
}
LEVEL = "filter"  # of cells whose confidence is the filter's
MISSING = "No filter was trained for {!r}: the probability of each token is compared with theta instead."
Filter = Callable[[int, list[int], torch.Tensor], torch.Tensor]


def filter_of(lane: Lane, canvas: Canvas) -> Filter:
    """The filter that the parameters name: (first position, most likely tokens [n], their probabilities [n])
    of a block -> the filter's confidence [n] that each position holds its final token.
    """
    chosen, trained = lane.parameters["filter"], lane.models["target"].heads.get("filter")
    if chosen == "oracle":
        final = stepwise(lane, canvas)
        return lambda low, tokens, confidences: torch.tensor(
            [float(final.get(low + i) == token) for i, token in enumerate(tokens)]
        )
    if chosen == "learned" and trained is not None:
        return lambda low, tokens, confidences: trained.scores(confidences)
    if chosen == "learned":
        lane.note(MISSING.format(lane.models["target"].name))
    return lambda low, tokens, confidences: confidences


def stepwise(lane: Lane, canvas: Canvas) -> dict[int, int]:
    """Position -> token of a canvas that is filled one token per forward, the surest of the block, up to the
    block that holds an end of text. The forwards count as lens forwards: a real lane could not know this
    text.
    """
    copy = replace(canvas, tokens=list(canvas.tokens))
    for low, high in blocks(copy, lane.parameters["block_length"]):
        while copy.masks(low, high):
            logits = lane.run_forward(
                lambda scorer, low=low, high=high: scorer.denoise([copy.tokens], low, high), "lens"
            )
            guessed = guess(lane, copy, logits[0], low, high)
            (surest,) = quota(guessed.confidence, 1)
            copy.tokens[guessed.positions[surest]] = guessed.tokens[surest]
        if lane.eos.intersection(copy.tokens[low:high]):
            break
    return dict(enumerate(copy.tokens))


def end_of_text(
    guessed: Guess, accepted: list[int], eos: frozenset[int], min_confidence: float
) -> int | None:
    """The position after which EoTP cuts the canvas, None for nowhere: the first accepted end of text, else
    the most probable guessed end of text, if its probability is at least `min_confidence`.
    """
    ends = [i for i, token in enumerate(guessed.tokens) if token in eos]
    if first := [i for i in ends if i in accepted]:
        return guessed.positions[first[0]]
    if not ends:
        return None
    best = ends[quota(guessed.confidence[ends], 1)[0]]
    return guessed.positions[best] if float(guessed.confidence[best]) >= min_confidence else None


def cut(lane: Lane, canvas: Canvas, position: int) -> None:
    """Takes the positions after `position` off the canvas for good."""
    for p in range(position + 1, canvas.stop):
        lane.cell(p, canvas.iteration, canvas.tokens[p], "trimmed")
    canvas.stop = position + 1
    del canvas.tokens[canvas.stop :]


@strategy(
    name="learn2pd",
    title="Learn2PD",
    family="diffusion",
    papers=("learning-to-parallel",),
    writes_with="diffusion",
    parameters=(
        choice(
            "filter",
            "learned",
            "What decides that a token is final: the trained network, the token's own probability, or an "
            "oracle that knows the text that one token per forward gives.",
            FILTERS,
        ),
        real("theta", 0.96, "How confident the filter must be; at 1 it accepts nothing.", low=0.0, high=1.0),
        integer(
            "block_length",
            32,
            "Length of the blocks, which are filled one after the other; the filter was trained for 32.",
            low=1,
            high=32,
        ),
        switch("eotp", True, "End-of-text prediction: cut the canvas after a predicted end of text."),
        real(
            "eot_min_confidence",
            0.0,
            "A predicted end of text with at least this probability cuts without the filter; 0 as published.",
            low=0.0,
            high=1.0,
        ),
    ),
    badge=lambda parameters: "deterministic",
    view="filter_grid",
    parts=lambda parameters: [
        *schedule(parameters),
        Part("policy", f"{parameters['filter']} filter", FILTERS[parameters["filter"]]),
        *(
            [Part("stop", "end-of-text prediction", "The canvas is cut after a predicted end of text.")]
            if parameters["eotp"]
            else []
        ),
    ],
)
def learn2pd(lane: Lane) -> Iterator[None]:
    """A small trained filter predicts which masks' best tokens are final; all of these are filled at once.

    1. A forward over the canvas gives the most likely token of every position of the block and its
       probability c, including positions that are already filled.
    2. The filter, two linear layers with a ReLU between them, reads the whole block's c and nothing else. It
       gives every position a number z; `sigmoid(z)` is its confidence that the token is final.
    3. Every mask with `sigmoid(z) > theta` is filled, and the mask with the highest c in any case.
    4. EoTP: if the filter accepted an end of text, the canvas is cut after the first one; otherwise after the
       mask that most probably holds one. What is cut off costs no further computation and never comes back.

    The filter imitates an oracle that fills a mask as soon as its prediction equals the final text. It was
    trained on texts filled one token per forward: did the most likely token at a mask turn out to be final?
    At a theta of 1, without EoTP, the text is exactly that of one token per forward. As published, EoTP cuts
    at any probability, so one early end of text shortens the answer; eot_min_confidence asks for more. If
    nothing is left to fill and no end of text was written, the lane ends.
    """
    parameters = lane.parameters
    canvas = canvas_of(lane)
    if lane.ended_by:
        return
    score = filter_of(lane, canvas)
    for low, high in blocks(canvas, parameters["block_length"]):
        while canvas.masks(low, high := min(high, canvas.stop)):
            reach = canvas.stop if parameters["eotp"] else high
            logits = denoise(lane, canvas, low, reach)  # [reach - low, V]
            guessed = guess(lane, canvas, logits, low, reach)
            chosen = accepted(lane, canvas, guessed, logits[: high - low], low, score)
            fill(lane, canvas, guessed, chosen)
            if parameters["eotp"] and lane.more:
                by_filter = [i for i, state in chosen.items() if state == "filtered"]
                end = end_of_text(guessed, by_filter, lane.eos, parameters["eot_min_confidence"])
                if end is not None and end + 1 < canvas.stop:
                    cut(lane, canvas, end)
            yield
            if not lane.more:
                return
    lane.ended_by = "End-of-text prediction cut the canvas, and nothing is left to fill."


def accepted(
    lane: Lane, canvas: Canvas, guessed: Guess, logits: torch.Tensor, low: int, score: Filter
) -> dict[int, str]:
    """Index -> state of the guessed positions of a block that are filled, by its logits [n, V]; records what
    the filter says of each.
    """
    best = logits.softmax(-1).max(-1)
    scores = score(low, best.indices.tolist(), best.values.double())
    chosen = {}
    inside = [i for i, p in enumerate(guessed.positions) if p < low + len(logits)]
    for i in inside:
        position, token = guessed.positions[i], guessed.tokens[i]
        sure = float(scores[position - low])
        lane.cell(position, canvas.iteration + 1, token, "candidate", sure, level=LEVEL)
        if sure > lane.parameters["theta"]:
            chosen[i] = "filtered"
    (surest,) = quota(guessed.confidence[inside], 1)
    return {surest: "forced"} | chosen
