"""Drax: a canvas of random tokens flows to text; every position may jump, and more than once.

Navon et al. (2025), "Drax: Speech Recognition with Discrete Flow Matching", sections 3.3 and 3.4; the jump
sampler is that of Gat et al. (2024), "Discrete Flow Matching".
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from decoders.diffusion.candidates import error_rates, medoid, most_frequent
from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB, entropies, log_softmax
from decoders.parameters import choice, integer, real
from decoders.registry import strategy
from decoders.strategy import Part
from decoders.trace.number_format import many, number
from decoders.trace.scores import ScoreName

ERROR_RATE, COUNT = "word_error_rate", "count"  # names of a candidate's scores
SCORES = {
    "word error rate": "The candidate with the lowest mean word error rate against all.",
    "most frequent": "The candidate that occurs most often.",
}


def jump_probability(t: float, h: float) -> float:
    """How probably a position whose predicted token differs jumps to it between t and t + h: the exact
    integral of the rate 1 / (1 - t) of a linear schedule.
    """
    return 1.0 - math.exp(-h / (1.0 - t))


@dataclass
class Candidate:
    """One unfinished text: its number, the tokens of its canvas, and from the last forward the rows [L, V] at
    temperature 1 and those that were drawn from.
    """

    number: int
    tokens: list[int]
    logprobs: torch.Tensor | None = None
    drawn: torch.Tensor | None = None
    node: int = -1
    text: str = ""


@strategy(
    name="drax",
    title="Drax",
    family="diffusion",
    writes_with="flow",
    parameters=(
        integer("num_steps", 16, "Steps from noise to text, one forward each.", low=1, high=256),
        integer("num_candidates", 1, "Texts that are generated side by side; one is chosen.", low=1, high=16),
        choice("score", "word error rate", "Which candidate is chosen.", SCORES),
        real(
            "temperature",
            0.01,
            "Temperature for drawing the predicted tokens; 0 takes the most likely. The paper uses 0.01 for "
            "one text, "
            "0.1 for several.",
            low=0.0,
            high=100.0,
        ),
    ),
    papers=("drax",),
    view="flow_grid",
    badge=lambda parameters: "sampled",
    parts=lambda parameters: [
        Part("region", "a canvas of random tokens", "Every position may change in every step."),
        Part("value", parameters["score"], SCORES[parameters["score"]]),
    ],
)
def drax(lane: Lane) -> Iterator[None]:
    """A canvas starts as random tokens, and every position jumps to predicted tokens until the text is done.

    1. An encoder reads the prompt as a source. A canvas of fixed length holds a uniform draw from the
       vocabulary at each position, at time t = 0.
    2. In each of num_steps steps of length h, one forward predicts the final token of every position from the
       current canvas, the time and the source. Each position draws a token from it, at `temperature`.
    3. Where it differs from the current token, the position jumps to it with probability `1 - exp(-h / (1 -
       t))`. In the last step every position takes its token. So a position may change several times, and
       early errors can be corrected.
    4. With several candidates, steps 1 to 3 run for all in the same forwards. The text is the medoid: the
       candidate with the lowest mean word error rate against all, itself included.

    The paper transcribes speech; here the source is text, and the model that comes with the project corrects
    short sentences: sampler, training path and scoring are the paper's; its audio and its error rates are
    not. Training passes through plausible wrong texts of a small head on the encoder; sampling leaves that
    head out, as in the paper. Tokens that are given at the start of a lane stay, so the method can be used as
    a drafter. The paper's optional term that adds noise again, and its scores by an autoregressive model or
    by its own bound, are not implemented.
    """
    engine = lane.models["target"].engine
    source, given = lane.trace.prompt, lane.tree.text(lane.tip)[len(lane.trace.prompt) :]
    open_ = range(len(given), engine.canvas)
    if not open_:
        lane.ended_by = f"All tokens of the canvas are given: {many(engine.canvas, 'position')}."
        return
    candidates = [start(lane, n, given, open_) for n in range(lane.parameters["num_candidates"])]
    lane.run_forward(lambda scorer: scorer.read(source))
    for step in range(lane.parameters["num_steps"]):
        flow_step(lane, candidates, open_, step)
        if step + 1 < lane.parameters["num_steps"]:
            yield
    for candidate in candidates:
        propose_text(lane, candidate, open_)
    choose(lane, candidates, open_)


def start(lane: Lane, number: int, given: list[int], open_: range) -> Candidate:
    """A canvas of uniform draws after the given tokens; records them."""
    uniform = torch.ones(lane.models["target"].engine.vocabulary)
    noise = [lane.chooser.categorical(uniform, ("noise", at, number)).value for at in open_]
    candidate = Candidate(number, [*given, *noise])
    for at in open_:
        lane.cell(place(lane, at), 0, candidate.tokens[at], "guess", level=level(lane, number))
    return candidate


def flow_step(lane: Lane, candidates: list[Candidate], open_: range, step: int) -> None:
    """One forward over all canvases, and the jumps that follow from it."""
    steps, temperature = lane.parameters["num_steps"], lane.parameters["temperature"]
    t, last = step / steps, step + 1 == steps
    jump = 1.0 if last else jump_probability(t, 1 / steps)
    canvases = [candidate.tokens for candidate in candidates]
    logits = lane.run_forward(lambda scorer: scorer.flow(canvases, t))  # [C, L, V]
    lane.record_measure(lane.tip, ScoreName.JUMP, jump, t=t)
    for candidate, row in zip(candidates, logits, strict=True):
        candidate.logprobs = log_softmax(row)
        candidate.drawn = log_softmax(row / temperature) if temperature else candidate.logprobs
        unsure = entropies(candidate.logprobs)
        for at in open_:
            before = candidate.tokens[at]
            token = predicted(lane, candidate, at, step)
            if token != before and (last or jumps(lane, jump, candidate, at, step)):
                candidate.tokens[at] = token
            state = "changed" if candidate.tokens[at] != before else "committed" if last else "kept"
            confidence = float(candidate.logprobs[at, candidate.tokens[at]].exp())
            where = (place(lane, at), step + 1, candidate.tokens[at], state, confidence)
            lane.cell(*where, level=level(lane, candidate.number), entropy=float(unsure[at]))


def predicted(lane: Lane, candidate: Candidate, at: int, step: int) -> int:
    """The final token that a position draws."""
    row = candidate.drawn[at]
    if not lane.parameters["temperature"]:
        return int(row.argmax())
    return lane.chooser.categorical(row.double().exp(), ("token", at, candidate.number, step)).value


def jumps(lane: Lane, probability: float, candidate: Candidate, at: int, step: int) -> bool:
    """Whether a position goes to the token that it drew."""
    return bool(lane.chooser.bernoulli(probability, ("jump", at, candidate.number, step)).value)


def propose_text(lane: Lane, candidate: Candidate, open_: range) -> None:
    """Puts a candidate's text into the tree, up to its end of text or the limit."""
    candidate.node, shown = lane.tip, b""
    for at in open_[: lane.left]:
        token = candidate.tokens[at]
        logprob = max(float(candidate.logprobs[at, token]), MIN_LOGPROB)
        candidate.node = lane.propose(candidate.node, token, logprob, "flow", candidate.number)
        if lane.ends(candidate.node):
            break
    nodes = lane.tree.path(candidate.node, above=lane.tip)
    tokens = [lane.tree.tokens[node] for node in nodes]
    shown = b"".join(lane.models["target"].bytes_of(token) for token in tokens if token not in lane.eos)
    candidate.text = shown.decode("utf-8", "replace").strip()
    lane.verdict(
        candidate.node,
        "finished",
        reason=f"candidate {candidate.number + 1} ends after {many(len(nodes), 'token')}",
    )


def choose(lane: Lane, candidates: list[Candidate], open_: range) -> None:
    """Scores the candidates, and commits the best of them with the rows that its last step drew from."""
    texts = [candidate.text for candidate in candidates]
    rates = error_rates(texts)
    means = [sum(row) / len(row) for row in rates]
    best = most_frequent(texts) if lane.parameters["score"] == "most frequent" else medoid(rates)
    if len(candidates) > 1:
        order = sorted(range(len(texts)), key=lambda i: (i != best, means[i]))
        for rank, i in enumerate(order, 1):
            against = {f"against {j + 1}": rate for j, rate in enumerate(rates[i])}
            lane.record_rank(candidates[i].node, ScoreName.WORD_ERROR_RATE, means[i], rank, **against)
        lane.note(
            f"Candidate {best + 1} of {len(texts)} is chosen; {many(texts.count(texts[best]), 'candidate')} "
            f"{'has' if texts.count(texts[best]) == 1 else 'have'} its text, and its mean word error rate "
            f"against all is {number(means[best])}."
        )
    commit(lane, candidates[best], open_)


def commit(lane: Lane, candidate: Candidate, open_: range) -> None:
    """Commits the text of one candidate; the positions after its end are not output."""
    nodes = lane.tree.path(candidate.node, above=lane.tip)
    rows = candidate.logprobs[open_.start : open_.start + len(nodes)]
    parents = [lane.tip, *nodes[:-1]]
    lane.distribution(parents, rows)
    if candidate.drawn is not candidate.logprobs:
        lane.distribution(parents, candidate.drawn[open_.start :][: len(nodes)], "processed")
    tokens = [lane.tree.tokens[node] for node in nodes]
    logprobs = [max(float(row[token]), MIN_LOGPROB) for row, token in zip(rows, tokens, strict=True)]
    ended = lane.ends(candidate.node)
    for at in open_[len(nodes) :] if ended else ():
        where = (place(lane, at), lane.parameters["num_steps"], candidate.tokens[at], "trimmed")
        lane.cell(*where, level=level(lane, candidate.number))
    lane.commit(nodes, logprobs)
    if not ended and lane.left:
        lane.ended_by = f"The canvas of {many(len(candidate.tokens), 'position')} is full."


def place(lane: Lane, at: int) -> int:
    """The position in the lane of a place on the canvas; the prompt counts."""
    return len(lane.trace.prompt) + at


def level(lane: Lane, number: int) -> str | None:
    """What names a candidate's cells: nothing if it is the only one."""
    return str(number + 1) if lane.parameters["num_candidates"] > 1 else None
