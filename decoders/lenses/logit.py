"""The logit lens (nostalgebraist 2020): middle states through the model's own last norm and head."""

from typing import Any

from decoders.lenses.frame import LensFrame
from decoders.lenses.registry import lens
from decoders.parameters import choice, integer

POSITIONS = integer(
    "positions", 24, "How many positions are shown: the last ones of the text.", low=1, high=512
)
COLOURS = ("probability", "KL to final", "Jensen-Shannon", "total variation", "entropy", "chosen token")
COLOUR = choice("colour", "probability", "What colours the cells.", COLOURS)


@lens(name="logit", title="Logit lens", parameters=(POSITIONS,), shows=(COLOUR,))
def logit(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """What each layer would say if it were the last: its state through the model's own last norm and head.

    `q = softmax(W_U norm(h))` at each position, after each layer and after the embeddings. The last row is
    the model's own distribution. The decision depth of a position is the smallest number of layers from
    which on the most likely token stays that of the last row.
    """
    from decoders.lenses.by_depth import depth_frame
    from decoders.lenses.tape import record

    tape = record(model.model, tokens)
    first = max(0, len(tokens) - options["positions"])
    rows = (tape.read(states) for states in tape.streams[:-1, first:])
    return depth_frame("logit", "Logit lens", tape, rows, first)
