"""Instructive decoding: away from what the model would write under a noisy instruction.

Kim et al. (2023), Distort, Distract, Decode: Instruction-Tuned Model Can Refine its Response from Noisy
Instructions. The instruction is the prompt's first line (or sentence); what follows it is kept.
"""

import math
from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.parameters import choice, free_text, integer, real
from decoders.prompt_variant import read_instead
from decoders.registry import strategy
from decoders.sampling.contrastive.contrast_algebra import reduced
from decoders.sampling.contrastive.contrast_loop import MIX, badge, subtracts_target, token_by_token
from decoders.sampling.contrastive.prompt_split import first_part, head
from decoders.sampling.sampling_parameters import GREEDY

TITLE = "noisy instruction"
OPPOSITE = "Say the opposite of what you are asked for, and never the right thing."
KEPT = 0.6  # share of the instruction's words that a shortened and shuffled one keeps
RANDOM = ("shortened and shuffled", "random words")
NOISES = ("opposite", "none", *RANDOM, "own text")


def words_in_random_order(lane: Lane, among: list[str], count: int) -> list[str]:
    """`count` of these words in a random order, none of them twice."""
    left, order = list(among), []
    for number in range(min(count, len(left))):
        index, _ = lane.chooser.categorical(torch.ones(len(left)).double() / len(left), ("noise", number))
        order.append(left.pop(index))
    return order


def dictionary(lane: Lane) -> list[str]:
    """Tokens of the model that are a whole word of at least three letters, with a space in front."""
    target = lane.models["target"]
    words = (target.bytes_of(token) for token in range(target.engine.vocabulary))
    return [w[1:].decode() for w in words if w[:1] == b" " and w[1:].isalpha() and w.isascii() and len(w) > 3]


def noise(lane: Lane, instruction: str) -> str:
    """The noisy instruction that replaces the given one."""
    match lane.parameters["noise"]:
        case "opposite":
            return OPPOSITE
        case "none":
            return ""
        case "own text":
            return lane.parameters["noisy_instruction"]
        case "random words":
            return " ".join(words_in_random_order(lane, dictionary(lane), lane.parameters["noise_words"]))
    words = instruction.split()
    return " ".join(words_in_random_order(lane, words, math.ceil(KEPT * len(words))))


def noised_prompt(lane: Lane) -> tuple[list[int], str]:
    """(the prompt's tokens with a noisy instruction in place of its own, that noisy instruction)."""
    prompt, target = lane.trace.prompt, lane.models["target"]
    start = head(prompt, target.special)
    cut = start + first_part(prompt[start:], target.bytes_of)
    instruction = b"".join(map(target.bytes_of, prompt[start:cut])).decode("utf-8", "replace")
    noised = noise(lane, instruction.strip())
    space = instruction[len(instruction.rstrip()) :] if noised else ""  # the line break stays
    tokens = [*prompt[:start], *target.cut(noised + space), *prompt[cut:]]
    return tokens or prompt[-1:], noised


@strategy(
    name="instructive",
    title="Instructive decoding",
    family="sampling",
    parameters=(
        real(
            "epsilon",
            0.3,
            "How much of what the noisy instruction suggests is subtracted; 0: none.",
            low=0.0,
            high=0.99,
        ),
        choice(
            "noise",
            "opposite",
            "What replaces the instruction, which is the prompt's first line, or the first sentence of a "
            "prompt of one line.",
            NOISES,
        ),
        integer("noise_words", 1, "Number of words for the noise `random words`.", low=1, high=32),
        free_text("noisy_instruction", "", "The instruction for the noise `own text`."),
        *GREEDY,
    ),
    papers=("distort-distract-decode",),
    reads=subtracts_target,
    view="contrast",
    badge=lambda parameters: "contrasted" if parameters["noise"] in RANDOM else badge(parameters),
    parts=lambda parameters: [MIX],
)
def instructive(lane: Lane) -> Iterator[None]:
    """Subtracts the model's logits under a noisy instruction; what remains follows the real one.

    1. The model reads the prompt, `z`, and the prompt with a noisy instruction in place of its own, `z~`: the
       opposite, none, a few of its words shuffled, random words, or one of your own.
    2. `z' = z - epsilon z~`. Processors and the draw, or the argmax, are applied to z'.
    3. The token is appended to both.

    The argmax is that of context-aware decoding with `alpha = epsilon / (1 - epsilon)`, but the distribution
    for sampling is flatter, as at temperature `1 / (1 - epsilon)`. The method is meant for models that follow
    instructions.
    """
    contrast = reduced(lane.parameters["epsilon"])
    if contrast.weights[1]:
        reads, noised = noised_prompt(lane)
        if not read_instead(lane, TITLE, reads):
            return
        lane.note(f"The noisy instruction: {noised}" if noised else "The second view has no instruction.")
    yield from token_by_token(lane, contrast, lambda: (TITLE, lane.score([lane.tip], role=TITLE)))
