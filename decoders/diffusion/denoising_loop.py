"""The loop of masked-diffusion decoding: a forward over the canvas, a choice of masks, and again, block by
block from left to right.

A strategy brings the choice; see unmask_policies.py.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from decoders.diffusion.canvas import Canvas, Guess, blank, blocks, commit_prefix, denoise, fill, guess, put
from decoders.diffusion.canvas_conflicts import record_conflicts
from decoders.diffusion.canvas_waits import record_waits
from decoders.diffusion.fixed_words import placed
from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import choice, free_text, integer, real, switch
from decoders.refusal import Refusal
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

Choice = Callable[[Guess, int], dict[int, str]]  # (guess, forwards of this block so far) -> index -> state

BLOCK = integer(
    "block_length",
    32,
    "Length of the blocks, which are filled one after the other; 0: the whole canvas is one block.",
    low=0,
    high=512,
)
TAU = real("tau", 0.9, "Masks with at least this probability are filled.", low=0.0, high=1.0)
SUFFIX = free_text("suffix", "", "Text after the canvas: the output is written in between.")
CACHE = choice(
    "cache",
    "none",
    "Keys and values that a block's later forwards reuse from its first: those of everything before the "
    "block, "
    "or of everything outside it.",
    ("none", "prefix", "dual"),
)
DRIFT = switch(
    "measure_drift",
    False,
    "Run each forward without the cache too (counted separately), and record where the most likely "
    "tokens differ.",
)
CFG = real(
    "cfg_scale",
    0.0,
    "Classifier-free guidance: how far the logits move from those without the prompt; 0 is none.",
    low=0.0,
    high=100.0,
)
NO_EOS = switch("logits_eos_inf", False, "Never write a token that ends the text.")


def canvas_of(lane: Lane) -> Canvas:
    """The blank canvas of a lane, with its suffix after it and its fixed words on it. Where they do not fit,
    the lane ends with one sentence.
    """
    target, prompt, suffix = lane.models["target"], lane.tree.text(lane.tip), []
    if text := lane.parameters.get("suffix", ""):
        suffix = target.encode_after(prompt, text)
    needed, context = len(prompt) + lane.left + len(suffix), target.context
    if needed > context:
        lane.ended_by = (
            f"Prompt, canvas and suffix take {needed:,} tokens, but the model reads at most {context:,}; "
            "shorten one of them."
        )
        return blank(lane)
    canvas = blank(lane, suffix)
    words, encode = lane.parameters.get("fixed_words", ""), partial(target.encode_after, prompt)
    try:
        put(lane, canvas, placed(words, canvas.start, canvas.stop, encode))
    except Refusal as error:
        lane.ended_by = str(error)
    return canvas


def filling(lane: Lane, choose: Callable[[int], Choice]) -> Iterator[None]:
    """Fills the lane's canvas. `choose(masks)` begins a block with this many masks and gives its choice."""
    canvas = canvas_of(lane)
    if lane.ended_by:
        return
    given = [p for p, token in enumerate(canvas.tokens) if token != canvas.mask]
    for low, high in blocks(canvas, lane.parameters.get("block_length", 0)):
        policy, forwards, before = choose(len(canvas.masks(low, high))), 0, []
        while canvas.masks(low, high):
            logits = allowed(lane, forward(lane, canvas, low, high, forwards, given))
            guessed = guess(lane, canvas, logits, low, high, lane.parameters.get("temperature", 0.0))
            chosen = policy(guessed, forwards)
            if lane.parameters.get("dependencies"):
                record_waits(lane, canvas, guessed, list(chosen), before, min_probability(lane.parameters))
                before = [guessed.positions[i] for i in chosen]
            if lane.parameters.get("conflicts"):
                record_conflicts(lane, canvas, guessed, list(chosen))
            fill(lane, canvas, guessed, chosen)
            forwards += 1
            yield
            if not lane.more:
                return
        commit_prefix(lane, canvas)  # a block that held fixed words alone
        if not lane.more:
            return


def min_probability(parameters: dict[str, Any]) -> float:
    """The probability below which a lane fills a mask only if no other mask is surer."""
    thresholds = "tau" in parameters and parameters.get("policy", "threshold") == "threshold"
    return parameters.get("tau_low", parameters["tau"]) if thresholds else 0.0


def allowed(lane: Lane, logits: torch.Tensor) -> torch.Tensor:
    """Logits [N, V] without end-of-text tokens, if the lane is to write none."""
    if not lane.parameters.get("logits_eos_inf") or not lane.eos:
        return logits
    return logits.index_fill(-1, torch.tensor(sorted(lane.eos), device=logits.device), -torch.inf)


def guided(lane: Lane, canvas: Canvas, low: int, high: int, given: list[int], scale: float) -> torch.Tensor:
    """Logits [high - low, V] of LLaDA's classifier-free guidance: `un + (scale + 1) (cond - un)`, where un
    are the logits of the canvas with all given tokens masked. Both are rows of one forward.
    """
    bare = canvas.with_tokens(dict.fromkeys(given, canvas.mask))
    cond, un = lane.run_forward(lambda scorer: scorer.denoise([canvas.tokens, bare], low, high))
    # where both are equal there is nothing to move; a table's impossible tokens are -inf in both
    return torch.where(cond == un, cond, un + (scale + 1.0) * (cond - un))


def forward(lane: Lane, canvas: Canvas, low: int, high: int, forwards: int, given: list[int]) -> torch.Tensor:
    """Logits [high - low, V] of a block, with the keys and values that the parameter `cache` keeps. given:
    the positions that were not masked at first.
    """
    if scale := lane.parameters.get("cfg_scale", 0.0):
        return guided(lane, canvas, low, high, given, scale)
    cache = lane.parameters.get("cache", "none")
    if cache == "none":
        return denoise(lane, canvas, low, high)
    if forwards == 0:
        return lane.run_forward(lambda scorer: scorer.keep(canvas.tokens, low, high, cache == "dual"))[0]
    logits = lane.run_forward(lambda scorer: scorer.denoise_part(canvas.tokens, high))[0]
    if lane.parameters["measure_drift"]:
        exact = lane.run_forward(lambda scorer: scorer.denoise([canvas.tokens], low, high), "lens")[0]
        rows = [p - low for p in canvas.masks(low, high)]
        differ = (logits[rows].argmax(-1) != exact[rows].argmax(-1)).double().mean()
        lane.record_measure(lane.tip, ScoreName.DRIFT, float(differ))
    return logits


def cached(parameters: dict[str, Any]) -> dict[str, set[Capability]]:
    """What a lane with these parameters reads of its target, see `strategy.Strategy.reads`."""
    return {} if parameters["cache"] == "none" else {"target": {Capability.CANVAS_PARTS}}


def schedule(parameters: dict[str, Any]) -> list[Part]:
    """How a lane's canvas is cut, as a part."""
    length = parameters["block_length"]
    how = f"blocks of {length} from left to right" if length else "the whole canvas at once"
    return [Part("region", how, "Masks of a later block wait until the block before it is full.")]
