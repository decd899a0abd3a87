"""FastCoT: decodes the reasoning exactly while guessing ahead, then takes the guesses unverified and asks for
the answer.

Zhang et al. (2023), Fast Chain-of-Thought. The reasoning is written by Jacobi iteration in a sliding window,
which ends after a number of passes. The method is lossy by design.
"""

import math
from collections.abc import Iterator

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parallel.jacobi import corrected, first_guess, propose_chain
from decoders.parameters import choice, integer, switch
from decoders.registry import strategy
from decoders.strategy import Part
from decoders.trace.number_format import many

QUESTIONS = {  # name of a choice -> the text that the model reads
    "So the answer is": " So the answer is",
    "answer": "\nanswer",
    "In the end,": "\n\nIn the end,",
}


@strategy(
    name="fastcot",
    title="FastCoT",
    family="parallel",
    papers=("fast-chain-of-thought",),
    parameters=(
        integer("block_size", 8, "Positions in the window; 0 decodes token by token.", low=0, high=64),
        integer(
            "passes",
            12,
            "Maximum number of forwards of reasoning before the answer is requested.",
            low=1,
            high=512,
        ),
        switch("glance", True, "Whether the window's unchecked guesses are placed before the question."),
        choice("question", "So the answer is", "The text that asks for the answer.", QUESTIONS),
        choice(
            "first_guess",
            "repeat",
            "What a new position starts from: the last token again, tokens of the prompt, or end of text.",
            ("repeat", "prompt", "pad"),
        ),
    ),
    view="parallel_grid",
    badge=lambda parameters: "relaxed",
    parts=lambda parameters: [
        Part("schedule", "sliding window", "Each forward corrects all positions of a moving window."),
        Part(
            "schedule",
            "early answer",
            "After some forwards the answer is requested, even if positions are still open.",
        ),
    ],
)
def fastcot(lane: Lane) -> Iterator[None]:
    """Cuts the reasoning short: some exact tokens, a glance at unverified guesses, then the answer.

    1. A window of block_size guesses follows the text. One forward corrects all of them: the leading guesses
       that equal the model's own tokens are exact, and so is one more token.
    2. The window moves to the first position that is not exact, with the other predictions as its guesses.
    3. After `passes` passes the guesses are taken unchecked and the question is appended. The answer
       is decoded greedily, token by token.

    Up to the glance the text is that of greedy decoding. If the text itself reaches the question, or its end,
    before the passes are used up, nothing is cut short.
    """
    tree, guesses, number = lane.tree, [], 0
    question = QUESTIONS[lane.parameters["question"]]
    asked = False
    while lane.more and not asked and number < lane.parameters["passes"]:
        number += 1
        size = min(lane.parameters["block_size"], lane.left - 1)
        start = tree.depths[lane.tip] + 1
        fresh = first_guess(lane, max(0, size - len(guesses)))
        for place, token in enumerate(fresh, start + len(guesses)):
            lane.cell(place, number - 1, token, "guess")
        guesses = [*guesses, *fresh][:size]
        visited = [lane.tip, *propose_chain(lane, guesses)]
        path, logprobs, outputs = corrected(lane, visited, number)
        lane.commit(path, logprobs)
        lane.drop(visited[len(path) :])
        guesses = outputs[len(path) :]
        asked = question.strip().encode() in words(lane)
        yield
    if lane.more and not asked:
        ask(lane, guesses if lane.parameters["glance"] else [], question, number + 1)
        yield
    while lane.more:
        number += 1
        answer(lane, number + 1)
        yield


def words(lane: Lane) -> bytes:
    """The text that the lane has written, as bytes."""
    text = lane.tree.text(lane.tip)[lane.tree.trunk :]
    return b"".join(map(lane.models["target"].bytes_of, text))


def ask(lane: Lane, guesses: list[int], question: str, iteration: int) -> None:
    """Commits the guesses unchanged, up to an end-of-text token, and the question after them."""
    ends = [i for i, token in enumerate(guesses) if token in lane.eos]
    glance = guesses[: ends[0]] if ends else guesses
    text = [*lane.tree.text(lane.tip), *glance]
    tokens = [*glance, *lane.models["target"].encode_after(text, question)][: lane.left]
    exact, start = lane.written, lane.tree.depths[lane.tip] + 1
    nodes = propose_chain(lane, tokens)
    visited = [lane.tip, *nodes]
    logits = lane.score(visited)  # [N + 1, V]; the last row begins the answer
    lane.distribution(visited[:-1], logits[:-1])
    logprobs = log_softmax(logits)
    token_logprobs = [float(logprobs[i, token]) for i, token in enumerate(tokens)]
    for i, (node, token) in enumerate(zip(nodes, tokens, strict=True)):
        taken = i < len(glance)
        why = "A guess, taken unchecked." if taken else "It belongs to the question, which is inserted here."
        lane.verdict(node, "forced", p=math.exp(token_logprobs[i]), reason=why)
        lane.cell(start + i, iteration, token, "kept" if taken else "settled", math.exp(token_logprobs[i]))
    behind = "none of the guesses"
    if glance:
        behind = many(len(glance), "guess", "guesses")
    behind += " after them"
    sure = f"{many(exact, 'token')} {'is' if exact == 1 else 'are'} exact"
    taken = "is" if len(glance) == 1 else "are"
    lane.note(f"The answer is requested: {sure}, and {behind} {taken} taken unchecked.")
    lane.commit(nodes, token_logprobs)


def answer(lane: Lane, iteration: int) -> None:
    """Commits the most likely next token."""
    logits = lane.score([lane.tip])  # [1, V]
    logprobs = lane.distribution([lane.tip], logits)[0]
    token = int(logits[0].argmax())
    logprob = float(logprobs[token])
    node = lane.propose(lane.tip, token, logprob)
    lane.cell(lane.tree.depths[node], iteration, token, "settled", math.exp(logprob))
    lane.commit([node], [logprob])
