"""Masked diffusion: every forward predicts all masked positions, and a rule says which of them become final.

The decoding of LLaDA (Nie et al. 2025, "Large Language Diffusion Models", section 2.4), Dream (Ye et al.
2025), Fast-dLLM (Wu et al. 2025: threshold, factor, caches) and the EB-Sampler (Ben-Hamu et al. 2025), with
their rules as parts.
"""

from collections.abc import Iterator

import torch

from decoders.diffusion import unmask_policies as policies
from decoders.diffusion.canvas import Guess
from decoders.diffusion.canvas_conflicts import CONFLICTS
from decoders.diffusion.canvas_waits import WAITS
from decoders.diffusion.denoising_loop import (
    BLOCK,
    CACHE,
    CFG,
    DRIFT,
    NO_EOS,
    SUFFIX,
    TAU,
    Choice,
    cached,
    filling,
    schedule,
)
from decoders.diffusion.fixed_words import FIXED_WORDS, fixed_words_problem
from decoders.lane import Lane
from decoders.parameters import choice, integer, real, switch
from decoders.registry import strategy
from decoders.strategy import Part

ORDERS = ("probability", "margin", "entropy", "random", "left to right")
POLICIES = {
    "quota": "Each forward fills tokens_per_forward masks, the most confident first.",
    "threshold": "Each forward fills all masks with a probability of at least tau, or else the most "
    "confident one.",
    "factor": "Each forward fills the n most confident masks as long as (n + 1)(1 - probability) stays "
    "below factor.",
    "entropy bound": "Each forward fills the most confident masks whose entropies, without the largest, "
    "sum to at most gamma.",
}


def together(parameters: dict) -> str | None:
    """What does not fit together, as a sentence; None if everything does."""
    if parameters["cfg_scale"] and parameters["cache"] != "none":
        return "cfg_scale reads two canvases in each forward, and the cache keeps one; set cache to none."
    return fixed_words_problem(parameters)


def badge(parameters: dict) -> str:
    """What the strategy promises with these parameters."""
    if not draws_at_random(parameters):
        return "deterministic"
    return "contrasted" if parameters["cfg_scale"] else "any order"


@strategy(
    name="masked_diffusion",
    title="Masked diffusion",
    family="diffusion",
    writes_with="diffusion",
    parameters=(
        choice("policy", "quota", "Which masks a forward fills.", POLICIES),
        integer(
            "tokens_per_forward", 1, "Number of masks that a quota fills in each forward.", low=1, high=512
        ),
        choice(
            "order",
            "probability",
            "The order in which a quota and an entropy bound take masks: by the top token's probability, by "
            "its margin over the second, by low entropy, at random, or from left to right.",
            ORDERS,
        ),
        choice(
            "schedule",
            "even",
            "How a quota is divided over forwards: evenly (LLaDA), or by decreasing times (Dream).",
            ("even", "times"),
        ),
        TAU,
        real("factor", 1.0, "The factor for the policy `factor`.", low=0.0, high=100.0),
        real("gamma", 0.1, "Entropy bound in nats.", low=0.0, high=100.0),
        BLOCK,
        real("temperature", 0.0, "0 takes the most likely token of each mask.", low=0.0, high=100.0),
        CFG,
        NO_EOS,
        switch(
            "confidence_eos_eot_inf",
            False,
            "Masks whose token ends the text are filled after all others, except where the order is random.",
        ),
        SUFFIX,
        FIXED_WORDS,
        CACHE,
        DRIFT,
        WAITS,
        CONFLICTS,
    ),
    view="canvas",
    parts=lambda parameters: [
        *schedule(parameters),
        Part("policy", parameters["policy"], POLICIES[parameters["policy"]]),
    ],
    reads=cached,
    together=together,
    badge=badge,
)
def masked_diffusion(lane: Lane) -> Iterator[None]:
    """A row of masks becomes text: every forward predicts all of them, and a rule decides which become final.

    1. A canvas follows the prompt: one mask for every token that may be written.
    2. A forward over the whole canvas, in both directions, gives a distribution at every masked position of
       the current block. Each position picks its most likely token, or draws one at `temperature`.
    3. The policy fills some of them: a quota of the most confident, all above a threshold, and so on. Filled
       tokens stay.
    4. Steps 2 and 3 repeat until the block is full, then the next block begins. The text ends with an
       end-of-text token that has no mask before it.

    One token per forward samples the model's joint distribution in any order that does not depend on the
    draws: at a temperature of 1 with order random, left to right, margin or entropy. By probability, as in
    LLaDA's code, the drawn tokens compete for their positions, and likely ones win too often. More tokens per
    forward are drawn from the product of their marginals, which ignores that they depend on each other: see
    the experiment parallel-bench, and `conflicts`, which measures what each forward lost. Scores are
    probabilities before the temperature, as in LLaDA's code; tokens are drawn once, at the temperature
    itself. LLaDA's code fills the block after an end of text as well; here the lane ends as soon as the text
    does. With a cache, keys and values are those of the block's first forward: fast on long canvases and no
    longer exact; measure_drift says how far off it is.

    `cfg_scale` and the two options of end-of-text tokens are those of LLaDA's code. Guidance also reads the
    canvas with everything that was given masked, as a second row of the same forward, and scores with
    `un + (cfg_scale + 1) (cond - un)`. With confidence_eos_eot_inf, the confidence of every end-of-text token
    is below any other, as its authors describe it; in their code it changes only that of the one called EoT.
    """
    yield from filling(lane, lambda masks: choice_of(lane, masks))


def draws_at_random(parameters: dict) -> bool:
    """Whether anything is drawn at random."""
    return parameters["temperature"] > 0 or (
        parameters["order"] == "random" and parameters["policy"] == "quota"
    )


def choice_of(lane: Lane, masks: int) -> Choice:
    """The policy of a lane for a block of this many masks."""
    parameters = lane.parameters
    count = policies.quotas if parameters["schedule"] == "even" else policies.quotas_in_time
    quotas = count(masks, parameters["tokens_per_forward"])

    def choose(guessed: Guess, forwards: int) -> dict[int, str]:
        ordered = parameters["policy"] in ("quota", "entropy bound")
        scores = sureness(guessed, parameters["order"] if ordered else "probability")
        if parameters["confidence_eos_eot_inf"]:
            ends = torch.tensor([token in lane.eos for token in guessed.tokens])
            scores = scores.masked_fill(ends.to(scores.device), -torch.inf)
        match parameters["policy"]:
            case "quota" if parameters["order"] == "random":
                chosen = at_random(lane, guessed, quotas[forwards])
            case "quota":
                chosen = policies.quota(scores, quotas[forwards])
            case "threshold":
                chosen = policies.threshold(scores, parameters["tau"])
            case "factor":
                chosen = policies.factor(scores, parameters["factor"])
            case "entropy bound":
                chosen = policies.entropy_bound(scores, guessed.entropies, parameters["gamma"])
        return dict.fromkeys(chosen, "committed")

    return choose


def sureness(guessed: Guess, order: str) -> torch.Tensor:
    """Scores [n] of the guessed positions, higher is surer."""
    match order:
        case "margin":
            best = guessed.logprobs.topk(2, dim=-1).values.double().exp()
            return best[:, 0] - best[:, 1]
        case "entropy":
            return -guessed.entropies.double()
        case "left to right" | "random":
            return -torch.tensor(guessed.positions, dtype=torch.float64)
    return guessed.confidence


def at_random(lane: Lane, guessed: Guess, count: int) -> list[int]:
    """`count` of the guessed positions, each of those left with the same probability."""
    left = list(range(len(guessed.positions)))
    chosen = []
    for turn in range(min(count, len(left))):
        tag = ("order", guessed.positions[0], len(left), turn)
        chosen.append(left.pop(lane.chooser.categorical(torch.ones(len(left)), tag).value))
    return chosen
