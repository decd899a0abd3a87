"""A canvas in a lane: what stands at every position, what a forward would put at the masks, and how filled
positions become output.

Positions count the prompt. A position is filled whenever a strategy likes; it is committed as soon as all
before it are filled, so the lane's text always grows from the left.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch

from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB, entropies, log_softmax


@dataclass
class Canvas:
    """`tokens`: prompt, answer (positions start..stop-1) and what stands after it; masks where nothing is
    written. `rows`: of each filled position that is not committed yet, the row [V] it was filled from, and
    the same at the temperature, None without one.
    """

    tokens: list[int]
    start: int
    stop: int
    mask: int
    iteration: int = 0
    rows: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = field(default_factory=dict)
    committed: int = 0  # positions before this one are output

    def masks(self, low: int, high: int) -> list[int]:
        """The masked positions from low to high - 1."""
        return [p for p in range(low, high) if self.tokens[p] == self.mask]

    def with_tokens(self, filled: dict[int, int]) -> list[int]:
        """A copy of its tokens with some positions filled."""
        row = list(self.tokens)
        for position, token in filled.items():
            row[position] = token
        return row


@dataclass
class Guess:
    """What a forward says of the masked `positions` [n]: the picked `tokens`, `confidence` [n] (probability
    of the picked token at temperature 1), `logprobs` [n, V], `entropies` [n] in nats, and the rows [n, V]
    that were drawn from, `heated`; None if no temperature changed them.
    """

    positions: list[int]
    tokens: list[int]
    confidence: torch.Tensor
    logprobs: torch.Tensor
    entropies: torch.Tensor
    heated: torch.Tensor | None = None

    def at(self, indices: list[int]) -> dict[int, int]:
        """Position -> token of some of them."""
        return {self.positions[i]: self.tokens[i] for i in indices}


def blank(lane: Lane, suffix: list[int] | None = None) -> Canvas:
    """Prompt, a mask for every token that the lane may write, and a suffix; records the masks."""
    mask = lane.models["target"].engine.mask
    prompt = lane.tree.text(lane.tip)
    start, stop = len(prompt), len(prompt) + lane.left
    canvas = Canvas([*prompt, *[mask] * lane.left, *(suffix or [])], start, stop, mask, committed=start)
    for position in range(start, stop):
        lane.cell(position, 0, mask, "mask")
    return canvas


def put(lane: Lane, canvas: Canvas, tokens: dict[int, int]) -> None:
    """Puts tokens on a blank canvas, position -> token: the model did not choose them."""
    for position, token in sorted(tokens.items()):
        canvas.tokens[position] = token
        lane.cell(position, 0, token, "fixed")


def blocks(canvas: Canvas, length: int) -> Iterator[tuple[int, int]]:
    """(low, high) of the blocks of at most `length` positions from left to right; 0 means one block."""
    for low in range(canvas.start, canvas.stop, length or canvas.stop - canvas.start):
        yield low, min(low + length if length else canvas.stop, canvas.stop)


def denoise(lane: Lane, canvas: Canvas, low: int, high: int) -> torch.Tensor:
    """Logits [high - low, V] of the canvas as it stands; one forward."""
    return lane.run_forward(lambda scorer: scorer.denoise([canvas.tokens], low, high))[0]


def guess(
    lane: Lane, canvas: Canvas, logits: torch.Tensor, low: int, high: int, temperature: float = 0.0
) -> Guess:
    """What logits [high - low, V] put at the masks from low to high - 1: the most likely tokens, or at a
    temperature above 0 draws by the lane's chooser.
    """
    positions = canvas.masks(low, high)
    logprobs = log_softmax(logits[[p - low for p in positions]])
    heated = log_softmax(logprobs / temperature) if temperature else None
    if heated is None:
        tokens = logprobs.argmax(-1).tolist()
    else:
        tokens = [
            lane.chooser.categorical(row, ("token", position, canvas.iteration)).value
            for position, row in zip(positions, heated.double().exp(), strict=True)
        ]
    confidence = logprobs[torch.arange(len(tokens)), tokens].double().exp()
    return Guess(positions, tokens, confidence, logprobs, entropies(logprobs), heated)


def guess_each(lane: Lane, canvas: Canvas, filled: list[dict[int, int]], low: int, high: int) -> list[Guess]:
    """The most likely tokens at the masks of several canvases, each the canvas with some positions filled, in
    one forward.
    """
    boards = [replace(canvas, tokens=canvas.with_tokens(tokens)) for tokens in filled]
    rows, kind = [board.tokens for board in boards], "verify" if filled[1:] else "decode"
    logits = lane.run_forward(lambda scorer: scorer.denoise(rows, low, high), kind)  # [K, high - low, V]
    return [guess(lane, board, logits[k], low, high) for k, board in enumerate(boards)]


def guess_from_rows(guesses: list[Guess], positions: list[int]) -> Guess:
    """Combines guesses that were made without a temperature: position i of the result has the token and the
    row that guesses[i] gives for it.
    """
    rows = [(one, one.positions.index(p)) for one, p in zip(guesses, positions, strict=True)]
    fields = ("confidence", "logprobs", "entropies")
    stacked = {name: torch.stack([getattr(one, name)[i] for one, i in rows]) for name in fields}
    return Guess(positions, [one.tokens[i] for one, i in rows], **stacked)


def fill(lane: Lane, canvas: Canvas, guessed: Guess, chosen: dict[int, str]) -> None:
    """Ends an iteration: fills the guessed positions of `chosen` (index -> state) and records all of them."""
    canvas.iteration += 1
    for i, position in enumerate(guessed.positions):
        state, token = chosen.get(i, "candidate"), guessed.tokens[i]
        confidence, entropy = float(guessed.confidence[i]), float(guessed.entropies[i])
        lane.cell(position, canvas.iteration, token, state, confidence, entropy=entropy)
        if i in chosen:
            canvas.tokens[position] = token
            canvas.rows[position] = guessed.logprobs[i], None if guessed.heated is None else guessed.heated[i]
    commit_prefix(lane, canvas)


def commit_prefix(lane: Lane, canvas: Canvas) -> None:
    """Commits all filled positions up to the first mask, each token with the probability that it had when it
    was filled.
    """
    parent, nodes, logprobs = lane.tip, [], []
    while canvas.committed < canvas.stop and canvas.tokens[canvas.committed] != canvas.mask:
        token = canvas.tokens[canvas.committed]
        row, heated = canvas.rows.pop(canvas.committed, (None, None))
        logprob = None
        if row is not None:
            lane.distribution([parent], row[None])
            if heated is not None:
                lane.distribution([parent], heated[None], view="processed")
            logprob = max(float(row[token]), MIN_LOGPROB)
        source = "target" if row is not None else "placed"
        parent = lane.propose(parent, token, logprob, source)
        nodes.append(parent)
        logprobs.append(logprob)
        canvas.committed += 1
        if lane.ends(parent):
            break
    if nodes:
        lane.commit(nodes, logprobs)
    if lane.text_ended and lane.written:
        trim(lane, canvas)


def trim(lane: Lane, canvas: Canvas) -> None:
    """Records the positions after the end of the text, which are not part of the output."""
    for position in range(canvas.committed, canvas.stop):
        lane.cell(position, canvas.iteration, canvas.tokens[position], "trimmed")
