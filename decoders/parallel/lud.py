"""Lexical unit decoding: a fine-tuned model says the rest of a unit behind placeholders, in one forward.

Sun et al. (2024), Decoding at the Speed of Thought: Harnessing Parallel Decoding of Lexical Units for LLMs.
How units are marked for training is heads/path_independent/lexical_units.py; no code was published.
"""

from collections.abc import Iterator

import torch

from decoders.diffusion.canvas import Guess, fill, guess
from decoders.diffusion.causal_past import empty, grow, read
from decoders.lane import Lane
from decoders.registry import strategy
from decoders.strategy import Parameter, Part


def accepted(guessed: Guess, before: int, beta: float, repeated: float) -> dict[int, str]:
    """Which guesses are written, by index: the first, and further ones as long as each has a probability
    above `beta`, or `repeated` where it is the token before it once more. before: the newest token of the
    text.
    """
    chosen = {0: "committed"}
    tokens = [before, *guessed.tokens]
    for i in range(1, len(guessed.tokens)):
        bound = max(beta, repeated) if tokens[i + 1] == tokens[i] else beta
        if not float(guessed.confidence[i]) > bound:
            break
        chosen[i] = "committed"
    return chosen


@strategy(
    name="lud",
    title="Lexical unit decoding",
    family="parallel",
    papers=("decoding-at-the-speed-of-thought",),
    writes_with="lud",
    parameters=(
        Parameter("placeholders", "int", 3, "Placeholders behind the text (k).", low=0, high=16),
        Parameter(
            "beta",
            "float",
            0.9,
            "A guess behind a placeholder is written if its probability is above this; 1 writes none.",
            low=0.0,
            high=1.0,
        ),
        Parameter(
            "repetition_bound",
            "float",
            0.99,
            "The same for a guess that repeats the token before it; counts where it is stricter.",
            low=0.0,
            high=1.0,
        ),
    ),
    views=("canvas_grid", "canvas", "entropy", "timeline", "text"),
    parts=lambda parameters: [
        Part(
            "region",
            f"{parameters['placeholders']} placeholders",
            "Behind the newest token they guess the rest of a lexical unit.",
        ),
        Part("policy", "confidence", "The unit goes on as long as its tokens are nearly certain."),
        Part(
            "cache",
            "exact causal cache",
            "What is written is read again as tokens; placeholders leave nothing.",
        ),
    ],
    badge=lambda parameters: "relaxed",
)
def lud(lane: Lane) -> Iterator[None]:
    """A fine-tuned model writes a name, an idiom or a line of code at once where it is nearly certain of it.

    1. A lexical unit is a run of tokens of which all but the first have a probability of alpha or more (.9),
       given the true text before them. A copy of the model, here a low-rank adapter, learned to say the later
       tokens of such runs behind placeholders, and ordinary text as before. Half of its placeholders stood
       at other places: with those in front of units alone it was sure of itself where no unit was, and of
       JSON records one in five was right. Now 98 % are token by token, and 92 % at beta 0.9.
    2. Behind the text stand k placeholders. One forward gives the next token, in the newest token's row, and
       a guess in the row of each placeholder, which sees the text and the placeholders before it.
    3. The next token is written. The guess behind it is, too, if its probability is above beta, and so on;
       the first that is not ends the unit. A guess that repeats the token before it needs more
       (repetition_bound).
    4. What was written is read as ordinary tokens by the next forward; placeholders leave no keys and values.

    There is no verifier: the text may differ from what the fine-tuned model writes token by token, and that
    from what llama-tiny writes. With beta 1 it is the fine-tuned model's greedy text. The paper's outline is
    followed; alpha, beta, the placeholders' form and the repetition bound are our reading, for no code and no
    numbers were published. The authors fine-tune all weights of models of 7 and 13 billion parameters.
    """
    names = ("placeholders", "beta", "repetition_bound")
    count, beta, repeated = (lane.parameters[name] for name in names)
    canvas, cached = empty(lane), 0
    while lane.more:
        newest = canvas.committed
        grow(lane, canvas, 1 + count - (canvas.stop - newest))
        # the row of a position guesses the next one, so the last position is guessed and not read
        positions = list(range(cached, canvas.stop - 1))
        causal = torch.ones(len(positions), len(positions), dtype=torch.bool).tril()
        logits = read(lane, canvas, positions, causal, newest - cached)
        guessed = guess(lane, canvas, logits[newest - cached - 1 :], newest, canvas.stop)
        cached = newest
        fill(lane, canvas, guessed, accepted(guessed, canvas.tokens[newest - 1], beta, repeated))
        yield
