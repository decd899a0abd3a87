"""Set Block Decoding: one model predicts the next token and fills the masks of the next block, after an
exact cache.

Gat et al. 2025, "Set Block Decoding is a Language Model Inference Accelerator". Which masks are filled is the
EB-Sampler's bound (Ben-Hamu et al. 2025).
"""

from collections.abc import Iterator

import torch

from decoders.diffusion.canvas import fill, guess
from decoders.diffusion.causal_past import add_masks, empty, read_positions
from decoders.diffusion.unmask_policies import entropy_bound
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.strategy import Part


def block_sees(finished: int, block: int) -> torch.Tensor:
    """Which position sees which [N, N]: finished tokens see those before them, the block sees all finished
    tokens and all of itself.
    """
    sees = torch.ones(finished + block, finished + block, dtype=torch.bool).tril()
    sees[finished:] = True
    return sees


@strategy(
    name="set_block",
    title="Set Block Decoding",
    family="diffusion",
    papers=("set-block-decoding-is-a-language-model",),
    writes_with="set_block",
    parameters=(
        integer("block_length", 8, "Number of masks in a block (k).", low=1, high=64),
        real(
            "gamma",
            0.1,
            "Nats by which masks filled in one forward may depend on each other; 0 fills only the most "
            "confident one.",
            low=0.0,
            high=1000.0,
        ),
        real("temperature", 0.0, "0 takes the most likely token of each mask.", low=0.0, high=100.0),
    ),
    view="entropy_bound",
    parts=lambda parameters: [
        Part("region", f"blocks of {parameters['block_length']}", "Blocks are written from left to right."),
        Part(
            "policy",
            "entropy bound",
            "Fills the most confident masks whose entropies, without the largest, sum to at most gamma.",
        ),
        Part(
            "cache", "exact causal cache", "A finished block is read once more, causally, with the next one."
        ),
    ],
    badge=lambda parameters: "any order" if parameters["temperature"] else "deterministic",
)
def set_block(lane: Lane) -> Iterator[None]:
    """Fills a block of masks in any order, several per forward, on top of an ordinary cache of finished text.

    1. k masks follow the text. They see the whole text and each other; the text is causal and never sees
       them, so keys and values of finished tokens are those of ordinary decoding and stay in the cache.
    2. One forward of the block gives a distribution at every mask. By rising entropy H, the largest set with
       `sum H - max H <= gamma` is filled: this bounds the information between its tokens.
    3. Step 2 repeats until the block is full or the text has ended.
    4. The finished block enters the cache by being read causally, in the first forward of the next block.

    With gamma 0 every forward fills one mask; with a large gamma a block takes one forward. That a finished
    block is read together with the next one is our interpretation of the paper's figure. The authors
    fine-tune models of 8 billion parameters with blocks of 16; here it is a small one, trained with blocks of
    2 to 16.
    """
    length, gamma, temperature = (lane.parameters[name] for name in ("block_length", "gamma", "temperature"))
    canvas, cached = empty(lane), 0
    while lane.more:
        low = canvas.stop
        add_masks(lane, canvas, length)
        while canvas.masks(low, canvas.stop):
            sees = block_sees(low - cached, canvas.stop - low)
            logits = read_positions(lane, canvas, list(range(cached, canvas.stop)), sees, low - cached)
            guessed = guess(lane, canvas, logits[low - cached :], low, canvas.stop, temperature)
            chosen = entropy_bound(-guessed.entropies, guessed.entropies, gamma)
            fill(lane, canvas, guessed, dict.fromkeys(chosen, "committed"))
            cached = low
            yield
            if not lane.more:
                return
