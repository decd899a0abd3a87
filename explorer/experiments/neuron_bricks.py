"""Are there neurons for stories and neurons for records?

Configurable Foundation Models (Xiao et al. 2024) uses the word bricks for groups of feed-forward neurons that
fire for one ability. A neuron is as specific to a domain as its activation is good at telling the domain's
tokens from all others: average precision on one half of the texts, which the target itself continued. The
most specific neurons are then held at their mean, and the other half of the texts shows what that costs each
domain, compared with holding as many random neurons.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean

import torch

from explorer.experiments import Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import count, rows_of

PAPERS = ()  # none: here a domain does not lose most by its own neurons in three of four rows
DOMAINS = ("stories", "translation", "records", "word problems")
EACH, TOKENS = 12, 48  # texts of a domain, tokens that the target writes after each prompt
SHARE = 0.01  # share of all neurons that are held at their mean
RANDOM = 5  # random sets of as many neurons
AT_RANDOM = "as many at random"


def texts(models: Models) -> dict[str, list[list[int]]]:
    """The texts of each domain: prompts that the target continued."""
    made = {}
    for domain in DOMAINS:
        traces = [decoded(models, "greedy", prompt, TOKENS) for prompt in prompts(domain, EACH)]
        made[domain] = [[*trace.prompt, *trace.output()] for trace in traces]
    return made


@contextmanager
def neurons(model: torch.nn.Module, fixed: torch.Tensor | None = None) -> Iterator[list[torch.Tensor]]:
    """While it is open: a list of the inputs to the last feed-forward matrix of each layer in each forward,
    [T, F] per layer. `fixed` [L, F]: values at which neurons are held, NaN for those left alone.
    """
    seen: list[torch.Tensor] = []

    def hook(layer: int) -> Callable[[torch.nn.Module, tuple], tuple]:
        def before(module: torch.nn.Module, given: tuple) -> tuple:
            (state,) = given
            if fixed is not None:
                state = torch.where(fixed[layer].isnan(), state, fixed[layer])
            seen.append(state[0])
            return (state,)

        return before

    layers = model.model.layers
    hooks = [one.mlp.down_proj.register_forward_pre_hook(hook(at)) for at, one in enumerate(layers)]
    try:
        yield seen
    finally:
        for one in hooks:
            one.remove()


def activations(model: torch.nn.Module, text: list[int]) -> torch.Tensor:
    """The neurons' activations [T, L, F] along a text."""
    with neurons(model) as seen:
        model(torch.tensor([text], device=model.device))
    return torch.stack(seen, 1)


def loss(model: torch.nn.Module, texts: list[list[int]], fixed: torch.Tensor | None = None) -> float:
    """Mean nats per token, with some neurons held at a value."""
    total, tokens = 0.0, 0
    with neurons(model, fixed):
        for text in texts:
            ids = torch.tensor([text], device=model.device)
            total += float(model(ids, labels=ids).loss) * (len(text) - 1)
            tokens += len(text) - 1
    return total / tokens


def average_precision(values: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """[N] for `values` [T, N]: the average precision of ranking T tokens by value."""
    hits = right[values.argsort(0, descending=True)].to(torch.float32)
    ranks = torch.arange(1, len(hits) + 1, device=hits.device)[:, None]
    return (hits * hits.cumsum(0) / ranks).sum(0) / hits.sum(0)


def held(mean: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """[L, F]: the mean of the neurons with these numbers, NaN for all others."""
    fixed = torch.full_like(mean, float("nan")).flatten()
    fixed[chosen] = mean.flatten()[chosen]
    return fixed.view_as(mean)


@torch.inference_mode()
def run(models: Models) -> Result:
    """One row per domain whose neurons are held, and one for random neurons: the cost for each domain."""
    model, made = models["target"].model, texts(models)
    half = {domain: (own[::2], own[1::2]) for domain, own in made.items()}
    parts = {domain: torch.cat([activations(model, t) for t in own[0]]) for domain, own in half.items()}
    every = torch.cat(list(parts.values()))
    mean, sizes = every.mean(0), every.flatten(1).abs()
    domain_of = torch.cat([torch.full((len(part),), at) for at, part in enumerate(parts.values())])
    number = max(1, round(SHARE * mean.numel()))
    plain = {domain: loss(model, half[domain][1]) for domain in DOMAINS}
    rows, precise = [], []
    for at, name in enumerate(progress.each(DOMAINS)):
        precision = average_precision(sizes, domain_of.to(sizes.device) == at)
        best = precision.topk(number)
        precise.append(float(best.values.mean()))
        fixed = held(mean, best.indices)
        rows.append([name, *(loss(model, half[domain][1], fixed) - plain[domain] for domain in DOMAINS)])
    draw = torch.Generator().manual_seed(0)
    drawn = [held(mean, torch.randperm(mean.numel(), generator=draw)[:number]) for _ in range(RANDOM)]
    lost = [
        sum(loss(model, half[domain][1], fixed) for fixed in drawn) / RANDOM - plain[domain]
        for domain in DOMAINS
    ]
    rows.append([AT_RANDOM, *lost])
    own = sum(max(row[1:]) == row[at + 1] for at, row in enumerate(rows[:-1]))
    mine = sum(row[at + 1] for at, row in enumerate(rows[:-1])) / len(DOMAINS)
    low, high = min(min(row[1:]) for row in rows), max(max(row[1:]) for row in rows)
    picture = Heat(
        "What it costs to hold a domain's neurons",
        "nats per token more, in the rows whose neurons are held at their mean, in the columns on which text",
        list(DOMAINS),
        [Strip(row[0], [""], [[value] for value in row[1:]]) for row in rows],
        low,
        high,
    )
    says = [
        f"{count(number, 'neuron')} of {mean.numel():,} are held; their average precision is "
        + ", ".join(f"{value:.2f} for {name}" for name, value in zip(DOMAINS, precise, strict=True))
        + ".",
        f"In {own} of {len(DOMAINS)} rows the domain whose neurons are held loses most.",
        f"A domain loses {mine:.3f} nats by its own neurons and {sum(lost) / len(lost):.3f} by random ones, "
        "in the mean; a model of this size shares most of its neurons.",
    ]
    return Result(["neurons held", *DOMAINS], rows, says, pictures=[picture])


def own_and_random(answer: dict) -> dict[str, tuple[float, float]]:
    """Domain -> what it loses by its own neurons, and by as many at random."""
    rows = {row["neurons held"]: row for row in rows_of(answer)}
    return {name: (rows[name][name], rows[AT_RANDOM][name]) for name in answer["columns"][1:] if name in rows}


def finding(answer: dict) -> str:
    """The losses of all domains by their own neurons, and in how many a domain loses more than the others."""
    losses = own_and_random(answer).values()
    own, chance = (f"{fmean(values):.3f}".replace("-", "−") for values in zip(*losses, strict=True))
    rows = [row for row in rows_of(answer) if row["neurons held"] != AT_RANDOM]
    first = sum(row[row["neurons held"]] == max(list(row.values())[1:]) for row in rows)
    return (
        f"Without the neurons that are most special for a domain, the target loses {own} nats per token "
        f"there, in the mean of {len(rows)} domains, and {chance} without as many at random; in {first} "
        "of them the domain loses more than the others."
    )


def stands(answer: dict) -> Basis:
    """Domains, each with texts of its own, and random sets of neurons."""
    gaps = [own - chance for own, chance in own_and_random(answer).values()]
    compared = by_pairs("nats lost by own neurons against random ones", gaps)
    units = {"domains": len(gaps), "texts of each": EACH, "random sets of neurons": RANDOM}
    return Basis(units, compared=[compared])
