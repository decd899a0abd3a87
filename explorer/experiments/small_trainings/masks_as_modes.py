"""Is the attention mask all that makes an encoder?

One tiny transformer reads comments and the Python that they describe, letter by letter, and each training
batch has one of three masks: encoder (every letter sees every other; masked letters are predicted), decoder
(no letter sees later ones), encoder-decoder (the comment is seen as a whole, the code only up to each
letter); a prefix token names the mode. The baseline is a model of the same shape, trained equally long as a
decoder alone. Both are evaluated under all three masks: the loss in nats, how often the most likely letter is
right, and how many functions are written without an error. UniXcoder's contrastive learning is left out.
"""

import torch

from decoders.lenses.mask_modes import MODES, mode_mask
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models import mode_model
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import percent, rows_with

PAPERS = ("unixcoder",)
WIDTH, LAYERS, STEPS, BATCH = 96, 3, 500, 16
TESTED, WRITTEN = 96, 36  # pairs; functions that are written
TRAINED = {"all modes": MODES, "decoder alone": ("decoder",)}
EXAMPLE = ("last item", "xs[-1]")


def run(models: Models) -> Result:
    """One row per model and mode."""
    made = {
        name: mode_model.trained(modes, WIDTH, LAYERS, STEPS, BATCH)
        for name, modes in progress.each(TRAINED.items(), until=0.9)
    }
    pairs, table = mode_model.pairs(TESTED, -1), []
    asked = [(name, mode) for name in TRAINED for mode in MODES]
    for name, mode in progress.each(asked):
        model, rows = made[name], mode_model.rows_of(mode, pairs, -1)
        with torch.no_grad():
            loss = float(mode_model.loss_of(model, rows))
        right = None
        if mode != "encoder":
            wrote = [mode_model.written(model, mode, says) == body for says, body in pairs[:WRITTEN]]
            right = sum(wrote) / len(wrote)
        table.append([name, mode, loss, mode_model.filled(model, rows), right])
    columns = ["trained as", "asked as", "loss", "letters right", "functions right"]
    lines = [
        Line(name, [[float(at), row[2]] for at, row in enumerate(rows, 1)])
        for name in TRAINED
        if (rows := [row for row in table if row[0] == name])
    ]
    chart = Chart("The loss under each mask: 1 encoder, 2 decoder, 3 encoder-decoder", "mask", "nats", lines)
    return Result(columns, table, conclusions(table), chart, pictures=list(map(mask_picture, MODES)))


def mask_picture(mode: str) -> TokenMap:
    """Which letters see which in an example: one row per letter that looks."""
    says, body = EXAMPLE
    words = ["<mode>", *says.replace(" ", "␣"), "<sep>", *body, "<end>"]
    source = len(says) + 2
    sees = mode_mask(mode, len(words), source).float().tolist()
    title, what = f"The mask as {mode}", "1 where the row's letter sees the column's"
    return TokenMap(title, what, words, words, sees, 1.0, source)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    own, alone = ({row[1]: row for row in table if row[0] == name} for name in TRAINED)
    writing = ", ".join(f"{own[mode][4]:.0%} as {mode}" for mode in MODES[1:])
    return [
        f"One set of weights fills {own['encoder'][3]:.0%} of the masked letters and writes whole functions: "
        f"{writing}.",
        f"As a decoder the decoder alone has a loss of {alone['decoder'][2]:.3f} nats, "
        f"the model of all modes "
        f"{own['decoder'][2]:.3f}.",
        f"Under the encoder's mask the decoder alone fills {alone['encoder'][3]:.0%} of the masked letters: "
        "a mask that was never trained is no mode.",
    ]


def finding(answer: dict) -> str:
    """Accuracy on masked letters, with and without training on them."""
    own, alone = (
        next(row for row in rows_with(answer, "trained as", name) if row["asked as"] == "encoder")
        for name in TRAINED
    )
    return (
        f"The same weights read as an encoder or write as a decoder if training mixed the masks: then "
        f"{percent(own['letters right'])} of masked letters are filled rightly, against "
        f"{percent(alone['letters right'])} by a model that was only a decoder."
    )


STANDS = Basis({"held-out pairs": TESTED}, trained=1)
