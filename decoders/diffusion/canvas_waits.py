"""What a position of a canvas waited for: which of the positions filled one forward earlier decided its
token.

Each of those positions is masked again on a canvas of its own, all in one lens forward. If the position then
gets another token, or is no longer confident enough, it waited. Only dependencies that this test found are
recorded.
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
    positions (indices into the guess) waited for. `min_probability`: below it a mask is filled only if no
    other is surer. Call this before the canvas is filled. It costs one lens forward over len(before)
    canvases.
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
