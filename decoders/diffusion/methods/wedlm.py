"""WeDLM: masks filled in any order by a causal model, because known tokens stand physically before masks.

Liu et al. 2025, "WeDLM: Reconciling Diffusion Language Models with Standard Causal Attention for Fast
Inference".
"""

from collections.abc import Iterator

import torch

from decoders.diffusion.canvas import Canvas, fill, guess
from decoders.diffusion.causal_past import add_masks, empty, read_positions
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.strategy import Part


def known_first(canvas: Canvas, cached: int) -> list[int]:
    """The positions after the cache in physical order: filled ones, then masks, both by position."""
    return sorted(range(cached, canvas.stop), key=lambda p: (canvas.tokens[p] == canvas.mask, p))


def adjusted(entropies: torch.Tensor, positions: list[int], penalty: float) -> torch.Tensor:
    """H_i + penalty * d_i [n] in nats; d_i is the distance of a mask to the leftmost one."""
    distance = torch.tensor(positions, dtype=torch.float64) - min(positions)
    return entropies.double().cpu() + penalty * distance


def fillable(
    entropies: torch.Tensor, positions: list[int], tau: float, penalty: float
) -> tuple[list[int], bool]:
    """(indices of the masks to fill, whether any was below tau): those whose adjusted entropy is below tau,
    else the one with the smallest.
    """
    scores = adjusted(entropies, positions, penalty)
    below = [i for i, score in enumerate(scores.tolist()) if score < tau]
    return (below, True) if below else ([int(scores.argmin())], False)


@strategy(
    name="wedlm",
    title="WeDLM",
    family="diffusion",
    papers=("wedlm",),
    writes_with="wedlm",
    parameters=(
        integer("window", 6, "Open positions after the finished text (W).", low=1, high=64),
        real(
            "tau",
            0.4,
            "Masks whose adjusted entropy, in nats, is below this are filled; 0 fills one mask per forward.",
            low=0.0,
            high=1000.0,
        ),
        real(
            "distance_penalty",
            0.1,
            "Nats added per position between a mask and the leftmost one (lambda).",
            low=0.0,
            high=1000.0,
        ),
        real("temperature", 0.0, "0 takes the most likely token of each mask.", low=0.0, high=100.0),
    ),
    view="reading_order",
    parts=lambda parameters: [
        Part(
            "region", f"a window of {parameters['window']}", "The window moves along with the finished text."
        ),
        Part("policy", "entropy and distance", "Fills masks of low entropy near the finished text."),
        Part("cache", "exact causal cache", "A final token is read once more and then stays in the cache."),
    ],
    badge=lambda parameters: "any order" if parameters["temperature"] else "deterministic",
)
def wedlm(lane: Lane) -> Iterator[None]:
    """A window of masks moves along the text; a causal model fills them in any order, with an exact cache.

    1. The prompt is read into the cache. A window of W masks follows it.
    2. The model reads the window in physical order: filled positions first, then masks, each with the number
       of its true position. So under a plain causal mask every mask sees all known tokens, including those
       to its right.
    3. Filled tokens without a mask before them have seen only final text: their keys and values stay in the
       cache, and as many new masks join the window. Other filled tokens are read again in the next forward.
    4. For every mask, with entropy H and d positions after the leftmost mask, `H + lambda d` is compared with
       tau. Masks below tau are filled; if there is none, the one with the smallest value.

    Each token is read at least twice, as a mask and as itself: tokens cached per token read is at most 1/2,
    where it is 1 for ordinary decoding. Here a token is output as soon as there is no mask before it; the
    authors' loop outputs the token one forward later, when it enters the cache. Their model has 8 billion
    parameters; here it is a small one. They also filter tokens by top-k and top-p before drawing.
    """
    names = ("window", "tau", "distance_penalty", "temperature")
    window, tau, penalty, temperature = (lane.parameters[name] for name in names)
    canvas = empty(lane)
    cached = canvas.start
    read_positions(
        lane, canvas, list(range(cached)), torch.ones(cached, cached, dtype=torch.bool).tril(), cached
    )
    while lane.more:
        add_masks(lane, canvas, window - (canvas.stop - canvas.committed))
        slots, final = known_first(canvas, cached), canvas.committed - cached
        causal = torch.ones(len(slots), len(slots), dtype=torch.bool).tril()
        logits = read_positions(lane, canvas, slots, causal, final)
        guessed = guess(lane, canvas, logits, cached, canvas.stop, temperature)
        cached += final
        chosen, below = fillable(guessed.entropies, guessed.positions, tau, penalty)
        fill(lane, canvas, guessed, dict.fromkeys(chosen, "committed" if below else "forced"))
        yield
