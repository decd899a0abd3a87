"""What a position of a canvas waited for: which of the positions filled just before it made it what it is.

Each of those is masked again, all in one lens forward, a canvas each; where the position then gets another
token, or is not sure enough, it waited. Nothing is recorded that this test did not find.
"""

from decoders.diffusion.canvas import Canvas, Guess
from decoders.lane import Lane
from decoders.parameters import switch

WAITS = switch(
    "dependencies",
    False,
    "Find what each position waited for: positions filled one forward earlier are masked again, and the "
    "model runs once more (counted separately).",
)


def record_waits(
    lane: Lane,
    canvas: Canvas,
    guessed: Guess,
    chosen: list[int],
    before: list[int],
    min_probability: float = 0.0,
) -> None:
    """Records which of `before`, the positions that the forward before this one filled, each of the chosen
    positions (indices into the guess) waited for. `min_probability`: that below which none is filled
    but for want of a surer one.
    Call it before the canvas is filled. Costs one lens forward over len(before) canvases.
    """
    if not before or not chosen:
        return
    canvases = [canvas.with_tokens({source: canvas.mask}) for source in before]
    low, high = guessed.positions[0], guessed.positions[-1] + 1
    rows = lane.run_forward(lambda scorer: scorer.denoise(canvases, low, high), "lens").log_softmax(-1)
    for k, source in enumerate(before):
        for i in chosen:
            position, token = guessed.positions[i], guessed.tokens[i]
            row, sure = rows[k, position - low], float(guessed.confidence[i]) >= min_probability
            if int(row.argmax()) != token or (sure and float(row[token].exp()) < min_probability):
                lane.depend(source, position, 1.0, "causal")
