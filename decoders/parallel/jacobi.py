"""Jacobi decoding: guess a block of positions, let the model correct all of them at once, repeat until
nothing changes.

Santilli et al. 2023, "Accelerating Transformer Inference for Translation via Parallel Decoding" (Jacobi, and
Gauss-Seidel-Jacobi over blocks, until end of text). Needs no draft.
"""

import math
from collections.abc import Iterator

import torch

from decoders.constraints.settings import CONSTRAINT
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import MODEL_DEFAULTS
from decoders.strategy import Part
from decoders.trace.token_text import preference
from decoders.waits import DEPENDENCIES, LENS


@strategy(
    name="jacobi",
    title="Jacobi",
    family="parallel",
    papers=("accelerating-transformer-inference-for-translation-via-parallel",),
    parameters=(
        integer("block_size", 16, "Positions guessed and corrected together.", low=1, high=128),
        choice(
            "first_guess",
            "repeat",
            "What a new block starts from: the last token again, tokens of the prompt, or end of text.",
            ("repeat", "prompt", "pad"),
        ),
        DEPENDENCIES,
        MODEL_DEFAULTS,
        *CONSTRAINT,
    ),
    view="parallel_grid",
    badge=lambda parameters: "lossless: equal to greedy",
    parts=lambda parameters: [
        Part("schedule", "fixed-point iteration", "Each forward corrects all open positions of a block."),
        LENS,
    ],
)
def jacobi(lane: Lane) -> Iterator[None]:
    """Guesses a block of positions and corrects all of them in each forward until nothing changes.

    1. A block of block_size positions starts from arbitrary guesses.
    2. One forward gives the model's most likely token at every position of the block, each under the guesses
       before it. It solves `y_i = argmax p(. | x, y_<i)` for all i together, by fixed-point iteration.
    3. The leading guesses that equal the model's own tokens are final, and so is one more token; the other
       predictions are the next guesses.

    The text is that of greedy decoding. The authors' code keeps a block, of 3 or 5 positions, until nothing
    in it changes, and moves it by one position per pass; here all final positions leave it at once, which
    needs no more passes. No processors reshape the scores. To find the positions that a position waited for,
    earlier tokens are put back and the model runs again (lens forwards, counted separately).
    """
    iteration = 0
    guesses: list[int] = []
    waited: dict[int, list[int]] = {}  # position -> the positions that caused its last change
    before: list[int] = []  # tokens at the positions of the tip and the guesses in the previous pass
    while lane.more:
        if not guesses:
            guesses = first_guess(lane, min(lane.parameters["block_size"], lane.left) - 1)
            before, waited = [], {}
            start = lane.tree.depths[lane.tip] + 1
            for i, token in enumerate(guesses):
                lane.cell(start + i, iteration, token, "guess")
        iteration += 1
        start = lane.tree.depths[lane.tip] + 1  # position of the first open token
        visited = [lane.tip, *propose_chain(lane, guesses)]
        path, logprobs, outputs = corrected(lane, visited, iteration)
        if lane.parameters["dependencies"]:
            find_dependencies(lane, visited, before, outputs, waited)
        for position in range(start, start + len(path)):
            for source in waited.pop(position, []):
                lane.depend(source, position, 1.0, "causal")
        lane.commit(path, logprobs)
        lane.drop(visited[len(path) :])
        before, guesses = guesses[len(path) - 1 :], outputs[len(path) : len(guesses)]
        yield


def corrected(lane: Lane, visited: list[int], iteration: int) -> tuple[list[int], list[float], list[int]]:
    """One forward over `visited`, the tip and the G guesses below it: (the nodes that are now final, their
    log-probabilities, the model's most likely token after each of `visited`). Commits nothing.
    """
    chain = visited[1:]
    guesses = [lane.tree.tokens[n] for n in chain]
    start = lane.tree.depths[visited[0]] + 1
    logits = lane.score(visited)  # [G + 1, V]
    logprobs = log_softmax(logits)
    scores = lane.process(logits, visited)  # each row after its own guesses
    outputs = scores.argmax(-1).tolist()
    right = agreeing(guesses, outputs)
    lane.distribution(visited[: right + 1], logits[: right + 1])
    if scores is not logits:
        lane.distribution(visited[: right + 1], scores[: right + 1], view="processed")
    picked = logprobs[torch.arange(len(outputs)), outputs].tolist()
    own = judge_guesses(lane, chain, right, outputs, logprobs)
    for i, token in enumerate(outputs):
        state = "settled" if i <= right else "kept" if i < len(guesses) and token == guesses[i] else "changed"
        lane.cell(start + i, iteration, token, state, math.exp(picked[i]))
    return [*chain[:right], own], picked[: right + 1], outputs


def first_guess(lane: Lane, size: int) -> list[int]:
    """The start values of a new block of `size` positions."""
    how = lane.parameters["first_guess"]
    if how == "repeat":
        return [lane.tree.tokens[lane.tip]] * size
    if how == "pad" and lane.eos:
        return [min(lane.eos)] * size
    prompt, weights = lane.tree.tokens[: lane.tree.trunk], torch.ones(lane.tree.trunk)
    return [prompt[lane.chooser.categorical(weights, ("guess", lane.written + i)).value] for i in range(size)]


def propose_chain(lane: Lane, tokens: list[int]) -> list[int]:
    """Proposes a chain of guesses below the tip, and returns its nodes."""
    nodes, parent = [], lane.tip
    for token in tokens:
        parent = lane.propose(parent, token, None, source="guess", fill="fixed")
        nodes.append(parent)
    return nodes


def agreeing(guesses: list[int], outputs: list[int]) -> int:
    """The number of leading guesses that equal the model's outputs at their positions."""
    for count, (guess, output) in enumerate(zip(guesses, outputs, strict=False)):
        if guess != output:
            return count
    return len(guesses)


def judge_guesses(
    lane: Lane, chain: list[int], right: int, outputs: list[int], logprobs: torch.Tensor
) -> int:
    """Records verdicts on the guesses of a pass, of which the first `right` are accepted, and proposes the
    model's own token after them; returns its node.
    """
    for i, node in enumerate(chain):
        p = float(logprobs[i, lane.tree.tokens[node]].exp())
        if i < right:
            lane.verdict(node, "accepted", p=p, reason="The guess is the model's own most likely token here.")
        elif i == right:
            word = lane.models["target"].bytes_of(outputs[i])
            why = preference("model", word, math.exp(logprobs[i, outputs[i]]), p)
            lane.verdict(node, "rejected", p=p, reason=why)
        else:
            lane.verdict(node, "never reached", reason="An earlier position of the block is still open.")
    parent = chain[right - 1] if right else lane.tip
    logprob = float(logprobs[right, outputs[right]])
    own = lane.propose(parent, outputs[right], logprob)
    reason = "Everything before it is final, so this output of the model is final too."
    lane.verdict(own, "accepted", p=math.exp(logprob), reason=reason)
    return own


def find_dependencies(
    lane: Lane, visited: list[int], before: list[int], outputs: list[int], waited: dict[int, list[int]]
) -> None:
    """Finds which input changes of the last pass caused the output changes of this pass, by undoing the input
    changes one by one.

    `visited`: the input nodes of this pass (the tip and the guesses); `before`: the tokens at their positions
    in the pass before. For each input j that changed, the old token is put back and the model runs again (all
    j in one forward, as branches of the tree). If output i returns to its old value, i waited for j, which is
    added to `waited[position of i]`. Only dependencies that this test confirms are added.
    """
    tree = lane.tree
    now = [tree.tokens[n] for n in visited]
    start = tree.depths[lane.tip] + 1  # position of output 0
    changed = [i for i, guess in enumerate(now[1:]) if outputs[i] != guess]
    for i in changed:
        waited[start + i] = []
    tests: list[tuple[int, int, int]] = []  # (changed input j, output i, node whose row predicts i)
    made: list[int] = []
    for j, then in enumerate(before):
        if then == now[j] or not any(i >= j for i in changed):
            continue
        node = tree.parents[visited[j]]
        for i in range(j, changed[-1] + 1):
            node = tree.add(node, then if i == j else now[i])
            made.append(node)
            if i in changed:
                tests.append((j, i, node))
    if not tests:
        return
    rows = [node for _, _, node in tests]
    flipped = lane.process(lane.score(rows, kind="lens"), rows).argmax(-1).tolist()
    for (j, i, _), output in zip(tests, flipped, strict=True):
        if output == now[i + 1]:
            waited[start + i].append(start + j - 1)
    lane.drop(made)
