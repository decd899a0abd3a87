"""Is the attention mask all that makes an encoder?

One tiny transformer reads comments and the Python that they describe, letter by letter, and each training
batch has one of three masks: encoder (every letter sees every other; masked letters are predicted), decoder
(no letter sees later ones), encoder-decoder (the comment is seen as a whole, the code only up to each
letter); a prefix token names the mode. The baseline is a model of the same shape, trained equally long as a
decoder alone. Both are evaluated under all three masks: the loss in nats, how often the most likely letter is
right, and how many functions are written without an error. UniXcoder's contrastive learning is left out.
"""

from statistics import fmean

import torch

from decoders.lenses.mask_modes import MODES, mode_mask
from explorer.experiments import Models, progress
from explorer.experiments.basis import Basis
from explorer.experiments.curves import CurvesBy
from explorer.experiments.models import mode_model
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import Row, grouped, percent, rows_with
from explorer.experiments.sweep import Setting, Sweep

PAPERS = ("unixcoder",)
WIDTH, LAYERS, STEPS, BATCH = 96, 3, 500, 16
TESTED, WRITTEN = 96, 36  # pairs; functions that are written
TRAINED = {"all modes": MODES, "decoder alone": ("decoder",)}
LOSS, FILLED, WROTE = "loss", "letters right", "functions right"
EXAMPLE = ("last item", "xs[-1]")


def settings(models: Models) -> list[Setting]:
    """Both models, which are trained here, under every mask."""
    trained = {
        name: mode_model.trained(modes, WIDTH, LAYERS, STEPS, BATCH)
        for name, modes in progress.each(TRAINED.items(), until=0.9)
    }
    return [
        Setting((name, mode), parameters={"model": model, "mode": mode})
        for name, model in trained.items()
        for mode in MODES
    ]


def asked(models: Models, model: torch.nn.Module, mode: str) -> Row:
    """How well a model predicts, fills and writes under a mask, on pairs that it has not read."""
    pairs = mode_model.pairs(TESTED, -1)
    rows = mode_model.rows_of(mode, pairs, -1)
    with torch.no_grad():
        loss = float(mode_model.loss_of(model, rows))
    functions = pairs[:WRITTEN] if mode != "encoder" else []
    wrote = [mode_model.written(model, mode, says) == body for says, body in functions]
    return {LOSS: loss, FILLED: mode_model.filled(model, rows), WROTE: fmean(wrote) if wrote else None}


def mask_picture(mode: str) -> TokenMap:
    """Which letters see which in an example: one row per letter that looks."""
    says, body = EXAMPLE
    words = ["<mode>", *says.replace(" ", "␣"), "<sep>", *body, "<end>"]
    source = len(says) + 2
    sees = mode_mask(mode, len(words), source).float().tolist()
    title, what = f"The mask as {mode}", "1 where the row's letter sees the column's"
    return TokenMap(title, what, words, words, sees, 1.0, source)


def says(rows: list[Row]) -> list[str]:
    """What the model of all modes does under each mask, and what the decoder alone does."""
    own, alone = ({row["asked as"]: row for row in some} for some in grouped(rows, "trained as").values())
    writing = ", ".join(f"{own[mode][WROTE]:.0%} as {mode}" for mode in MODES[1:])
    return [
        f"One set of weights fills {own['encoder'][FILLED]:.0%} of the masked letters and writes whole "
        f"functions: {writing}.",
        f"As a decoder the decoder alone has a loss of {alone['decoder'][LOSS]:.3f} nats, the model of all "
        f"modes {own['decoder'][LOSS]:.3f}.",
        f"Under the encoder's mask the decoder alone fills {alone['encoder'][FILLED]:.0%} of the masked "
        "letters: a model cannot use a mask that it was never trained with.",
    ]


SWEEP = Sweep(
    names=("trained as", "asked as"),
    settings=settings,
    decode=asked,
    says=says,
    chart=CurvesBy(
        "The loss under each mask: 1 encoder, 2 decoder, 3 encoder-decoder",
        "mask",
        "nats",
        "trained as",
        (lambda row: 1.0 + MODES.index(row["asked as"]), LOSS),
    ),
    pictures=lambda rows: list(map(mask_picture, MODES)),
    one_process=True,
)


def finding(answer: dict) -> str:
    """Accuracy on masked letters, with and without training on them."""
    own, alone = (
        next(row for row in rows_with(answer, "trained as", name) if row["asked as"] == "encoder")
        for name in TRAINED
    )
    return (
        f"The same weights read as an encoder or write as a decoder if training mixed the masks: then "
        f"{percent(own[FILLED])} of masked letters are filled correctly, against "
        f"{percent(alone[FILLED])} by a model that was only a decoder."
    )


STANDS = Basis({"held-out pairs": TESTED}, trained=1)
