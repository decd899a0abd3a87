"""The tuned lens: the logit lens through a learned affine map for each depth. The maps are a trained head of
the target, see decoders/heads/scorers/tuned_lens.py.
"""

from typing import Any

from decoders.lenses.frame import LensFrame
from decoders.lenses.logit import COLOUR, POSITIONS
from decoders.lenses.registry import lens


def lacking(model: Any) -> str | None:
    """A sentence if no lens is trained for a model."""
    if "lens" in model.heads:
        return None
    return f"No tuned lens is trained for {model.name!r}; choose llama-tiny, or the logit lens."


@lens(name="tuned", title="Tuned lens", parameters=(POSITIONS,), shows=(COLOUR,), suits=lacking)
def tuned(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """What each layer says once an affine map has moved its state to where the last norm expects it.

    `q = softmax(W_U norm(h + A h + b))`, with a matrix A and a vector b for each depth, learned so that
    KL(p || q) is small, p being the model's own distribution; with A and b zero it is the logit lens. The
    last row has no map. On held-out stories, llama-tiny's maps are closer to its own distributions than the
    logit lens at eight depths and at the embeddings, and no closer after layers 3, 6 and 9: llama-tiny was
    trained to exit there, so its last norm reads those states already.
    """
    from decoders.lenses.by_depth import depth_frame
    from decoders.lenses.tape import record

    tape, first = record(model.model, tokens), max(0, len(tokens) - options["positions"])
    maps = model.heads["lens"]
    rows = (tape.read(maps.translated(level, tape.streams[level, first:])) for level in maps.reads)
    return depth_frame("tuned", "Tuned lens", tape, rows, first)
