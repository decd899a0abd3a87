"""Lexical unit decoding: a fine-tuned model predicts the rest of a unit at placeholders, in one forward.

Sun et al. (2024), Decoding at the Speed of Thought: Harnessing Parallel Decoding of Lexical Units for LLMs;
no code was published. heads/path_independent/lexical_units.py marks units for training.
"""

from collections.abc import Iterator

import torch

from decoders.diffusion.canvas import Guess, fill, guess
from decoders.diffusion.causal_past import add_masks, empty, read_positions
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.strategy import Part


def accepted(guessed: Guess, before: int, beta: float, repeated: float) -> dict[int, str]:
    """Index -> cell state of the guesses that are written: the first guess, and further ones as long as each
    has a probability above `beta`, or above `repeated` if it repeats the token before it. before: the newest
    token of the text.
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
        integer("placeholders", 3, "Number of placeholders after the text (k).", low=0, high=16),
        real(
            "beta",
            0.9,
            "A guess after a placeholder is written if its probability is above this; 1 writes none.",
            low=0.0,
            high=1.0,
        ),
        real(
            "repetition_bound",
            0.99,
            "The same for a guess that repeats the token before it; it applies where it is stricter.",
            low=0.0,
            high=1.0,
        ),
    ),
    view="canvas_grid",
    parts=lambda parameters: [
        Part(
            "region",
            f"{parameters['placeholders']} placeholders",
            "Placeholders after the newest token guess the rest of a lexical unit.",
        ),
        Part("policy", "confidence", "The unit continues as long as its tokens are nearly certain."),
        Part(
            "cache",
            "exact causal cache",
            "Written tokens are read again as ordinary tokens; placeholders leave nothing in the cache.",
        ),
    ],
    badge=lambda parameters: "relaxed",
)
def lud(lane: Lane) -> Iterator[None]:
    """A fine-tuned model writes a name, an idiom or a line of code in one step where it is nearly certain.

    1. A lexical unit is a run of tokens of which all but the first have a probability of alpha or more (.9),
       given the true text before them. A copy of the model, here a low-rank adapter, was trained to predict
       the later tokens of such runs at placeholders, and ordinary text as before. Half of the placeholders in
       training stood at other positions: with placeholders before units only, the model was overconfident
       where there was no unit, and one JSON record in five was right. Now 98 % are right token by token, and
       92 % at beta 0.9.
    2. k placeholders follow the text. One forward gives the next token, at the newest token, and a guess at
       each placeholder, which sees the text and the placeholders before it.
    3. The next token is written. The guess after it is written too if its probability is above beta, and so
       on; the first guess below beta ends the unit. A guess that repeats the token before it needs a higher
       probability (repetition_bound).
    4. The next forward reads the written tokens as ordinary tokens; placeholders leave no keys and values.

    There is no verifier: the text may differ from the fine-tuned model's token-by-token text, which in turn
    may differ from that of llama-tiny. With beta 1 the text is the fine-tuned model's greedy text. This
    follows the paper's outline; alpha, beta, the form of the placeholders and the repetition bound are our
    choices, since no code and no numbers were published. The authors fine-tune all weights of models of 7 and
    13 billion parameters.
    """
    names = ("placeholders", "beta", "repetition_bound")
    count, beta, repeated = (lane.parameters[name] for name in names)
    canvas, cached = empty(lane), 0
    while lane.more:
        newest = canvas.committed
        add_masks(lane, canvas, 1 + count - (canvas.stop - newest))
        # a row predicts the next position, so the last position is predicted but not read
        positions = list(range(cached, canvas.stop - 1))
        causal = torch.ones(len(positions), len(positions), dtype=torch.bool).tril()
        logits = read_positions(lane, canvas, positions, causal, newest - cached)
        guessed = guess(lane, canvas, logits[newest - cached - 1 :], newest, canvas.stop)
        cached = newest
        fill(lane, canvas, guessed, accepted(guessed, canvas.tokens[newest - 1], beta, repeated))
        yield
