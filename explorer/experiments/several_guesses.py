"""What are more guesses worth?

A verifier that may choose among k drafted tokens keeps the target's distribution and accepts more often than
with a single guess, yet each rule stays below what optimal transport between the two distributions permits
(Sun et al. 2023, section 3). How far below that ceiling is each rule in real text?
"""

from statistics import fmean

import torch

from decoders.logits.distributions import probabilities, residual, without
from decoders.speculative.verifiers.kseq import ceiling, division
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.reading import percent, rows_of

PAPERS = ()
GUESSES, PROMPTS, TOKENS, DRAWS = (1, 2, 3, 4, 6, 8), 6, 48, 8
DISTINCT = "recursive rejection, guesses distinct"


def target_first(p: torch.Tensor, q: torch.Tensor, count: int) -> float:
    """The probability that a draw from p [V] is among `count` independent draws from q [V]."""
    return float((p * (1 - (1 - q) ** count)).sum())


def recursive(p: torch.Tensor, q: torch.Tensor, count: int) -> float:
    """The probability that one of `count` independent draws from q [V] is accepted by recursive rejection."""
    missed, left = 1.0, p
    for _ in range(count):
        missed *= 1.0 - float(torch.minimum(left, q).sum())
        rest = residual(left, q)
        if rest is None:
            return 1.0
        left = rest
    return 1.0 - missed


def kseq(p: torch.Tensor, q: torch.Tensor, count: int) -> float:
    """The probability that one of `count` independent draws from q [V] is accepted by K-SEQ with its best
    rho.
    """
    _, beta = division(p, q, count)
    return 1.0 - (1.0 - beta) ** count


def distinct(p: torch.Tensor, q: torch.Tensor, count: int, draws: int, dice: torch.Generator) -> float:
    """The probability that one of `count` draws from q [V] without replacement is accepted by recursive
    rejection: the mean over `draws` sampled sequences of rejected tokens, where the probability of each test
    is exact.
    """
    total = 0.0
    for _ in range(draws):
        missed, left, drafted = 1.0, p, q
        for _ in range(count):
            missed *= 1.0 - float(torch.minimum(left, drafted).sum())
            refused, rest = residual(drafted, left), residual(left, drafted)
            if refused is None or rest is None:
                missed = 0.0
                break
            token = int(torch.multinomial(refused, 1, generator=dice))
            left, drafted = rest, without(drafted, token)
            if float(drafted.sum()) == 0.0:
                break  # no token is left to draw
        total += (1.0 - missed) / draws
    return total


RULES = {
    "the target draws first": target_first,
    "recursive rejection": recursive,
    "K-SEQ": kseq,
    "upper bound": ceiling,
}


@torch.inference_mode()
def distributions(models: Models) -> list[list[tuple[torch.Tensor, torch.Tensor]]]:
    """For each text sampled from the target, the target's and the draft's distributions [V] at its
    positions.
    """
    texts = []
    for seed, prompt in progress.each(enumerate(prompts("stories", PROMPTS)), until=0.3):
        trace = decoded(models, "sample", prompt, TOKENS, seed, temperature=1.0)
        ids, first = torch.tensor([[*trace.prompt, *trace.output()]]), len(trace.prompt) - 1
        p, q = (
            probabilities(models[role].model(ids.to(models[role].model.device)).logits[0, first:-1]).cpu()
            for role in ("target", "draft")
        )
        texts.append(list(zip(p, q, strict=True)))
    return texts


def run(models: Models) -> Result:
    """The probability that a guess is accepted at one position, for each rule and number of guesses: means
    over positions, exact at each except for distinct guesses.
    """
    dice, texts, rows = torch.Generator().manual_seed(0), distributions(models), []
    places = [pair for text in texts for pair in text]
    for count in progress.each(GUESSES, weight=float):
        shares = [sum(rule(p, q, count) for p, q in places) / len(places) for rule in RULES.values()]
        shares.append(sum(distinct(p, q, count, DRAWS, dice) for p, q in places) / len(places))
        rows.append([count, *shares])
    names = [*RULES, DISTINCT]
    one, last = rows[0], rows[-1]
    room = last[4] - one[4]
    says = [
        f"One guess is accepted in {one[3]:.0%} of the cases; of {last[0]} independent ones K-SEQ takes one "
        f"in {last[3]:.0%}, recursive rejection in {last[2]:.0%}; no rule that keeps the target's "
        f"distribution could exceed {last[4]:.0%}.",
        f"Of what further guesses could add, K-SEQ adds {(last[3] - one[3]) / room:.0%} and recursive "
        f"rejection {(last[2] - one[2]) / room:.0%}."
        if room > 0
        else "Further guesses could add nothing.",
        f"Guesses that are drawn without replacement waste none on a token that was rejected: one of "
        f"{last[0]} is taken in {last[5]:.0%}. The ceiling above is that of independent guesses, not theirs.",
        f"{len(places)} positions of texts sampled from the target at temperature 1; one level of a tree.",
    ]
    lines = [Line(name, [[row[0], row[i]] for row in rows]) for i, name in enumerate(names, 1)]
    title = "How often one of k guesses is accepted"
    chart = Chart(title, "guesses at one position", "probability", lines)
    gains = [fmean(kseq(p, q, last[0]) - kseq(p, q, one[0]) for p, q in text) for text in texts]
    compared = [by_pairs(f"accepted, {last[0]} guesses against {one[0]}", gains)]
    return Result(["guesses", *names], rows, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """One guess, and the largest number of guesses with the best rule."""
    one, many = rows_of(answer)[0], rows_of(answer)[-1]
    return (
        f"A single guess is accepted {percent(one['K-SEQ'])} of the time and one of {many['guesses']} "
        f"guesses {percent(many['K-SEQ'])}; no rule that keeps the target's distribution could exceed "
        f"{percent(many['upper bound'])}."
    )


STANDS = Basis({"prompts": PROMPTS})
