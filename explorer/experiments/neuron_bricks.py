"""Are there neurons for stories and neurons for records?

Configurable Foundation Models (Xiao et al. 2024) uses the word bricks for groups of feed-forward neurons that
fire for one ability. A neuron is as specific to a domain as its activation is good at telling the domain's
tokens from all others: average precision on one half of the texts, which the target itself sampled. The most
specific neurons, a share of all, are then held at their mean, and the other half of the texts shows what that
costs each domain, compared with holding as many random neurons. Every draw has texts of its own; the table
has means over the draws. A brick counts as found if its own domain loses most.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean

import torch

from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import grouped, minus, percent, rows_of, two

PAPERS = ("configurable-foundation-models",)
DOMAINS = ("stories", "translation", "records", "word problems")
EACH, TOKENS = 12, 48  # texts of a domain, tokens that the target writes after each prompt
SHARES = (0.01, 0.02, 0.05)  # of all neurons that are held at their mean
RANDOM = 5  # random sets of as many neurons
DRAWS = 3  # of texts and of random sets
AT_RANDOM = "as many at random"
Damages = dict[tuple[float, str], list[float]]  # (share, whose neurons are held) -> cost for each domain


def texts(models: Models, draw: int) -> dict[str, list[list[int]]]:
    """The texts of each domain: prompts that the target continued, sampled with this draw's seeds."""
    made = {}
    for domain in progress.each(DOMAINS):
        asked = prompts(domain, EACH)
        cases = [(asked[at % len(asked)], EACH * draw + at) for at in range(EACH)]
        traces = [decoded(models, "sample", prompt, TOKENS, seed) for prompt, seed in progress.each(cases)]
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
def damages(models: Models, draw: int) -> Damages:
    """What holding the neurons of each domain, or AT_RANDOM, costs in one draw."""
    model = models["target"].model
    with progress.part(0.5):
        half = {domain: (own[::2], own[1::2]) for domain, own in texts(models, draw).items()}
    parts = {domain: torch.cat([activations(model, t) for t in own[0]]) for domain, own in half.items()}
    every = torch.cat(list(parts.values()))
    mean, sizes = every.mean(0), every.flatten(1).abs()
    domain_of = torch.cat([torch.full((len(part),), at) for at, part in enumerate(parts.values())])
    domain_of = domain_of.to(sizes.device)
    plain = {domain: loss(model, half[domain][1]) for domain in DOMAINS}
    ranked = [
        average_precision(sizes, domain_of == at).argsort(descending=True) for at in range(len(DOMAINS))
    ]
    generator = torch.Generator().manual_seed(draw)

    def cost(chosen: torch.Tensor) -> list[float]:
        fixed = held(mean, chosen)
        return [loss(model, half[domain][1], fixed) - plain[domain] for domain in DOMAINS]

    found = {}
    for share in progress.each(SHARES):
        number = max(1, round(share * mean.numel()))
        for name, order in progress.each(zip(DOMAINS, ranked, strict=True), until=0.5):
            found[share, name] = cost(order[:number])
        sets = [torch.randperm(mean.numel(), generator=generator)[:number] for _ in range(RANDOM)]
        costs = [cost(chosen.to(sizes.device)) for chosen in progress.each(sets)]
        found[share, AT_RANDOM] = [fmean(column) for column in zip(*costs, strict=True)]
    return found


def run(models: Models) -> Result:
    """A row for each share and domain whose neurons are held, and for as many random ones."""
    draws = [damages(models, draw) for draw in progress.each(range(DRAWS))]
    keys = list(draws[0])
    means = {
        key: [fmean(column) for column in zip(*(one[key] for one in draws), strict=True)] for key in keys
    }
    rows: list[list[Cell]] = [[share, name, *means[share, name]] for share, name in keys]
    compared = [
        by_pairs(
            f"nats lost by own neurons against random ones, {percent(share)}",
            [
                one[share, name][at] - one[share, AT_RANDOM][at]
                for one in draws
                for at, name in enumerate(DOMAINS)
            ],
        )
        for share in SHARES
    ]
    says = [conclusion(share, means, draws) for share in SHARES]
    return Result(["share", "neurons held", *DOMAINS], rows, says, compared=compared, pictures=[heat(means)])


def leading(damages: Damages, share: float) -> int:
    """In how many rows the domain whose neurons are held loses most."""
    return sum(max(damages[share, name]) == damages[share, name][at] for at, name in enumerate(DOMAINS))


def heat(means: Damages) -> Heat:
    """The costs at the largest share."""
    share = SHARES[-1]
    rows = {name: means[share, name] for name in (*DOMAINS, AT_RANDOM)}
    low, high = min(map(min, rows.values())), max(map(max, rows.values()))
    return Heat(
        f"What it costs to hold the {percent(share)} of the neurons most specific to a domain",
        "extra nats per token; row: whose neurons are held at their mean; column: on which text",
        list(DOMAINS),
        [Strip(name, [""], [[value] for value in costs]) for name, costs in rows.items()],
        low,
        high,
    )


def conclusion(share: float, means: Damages, draws: list[Damages]) -> str:
    """What was found at a share."""
    own = fmean(means[share, name][at] for at, name in enumerate(DOMAINS))
    chance = fmean(means[share, AT_RANDOM])
    each = ", ".join(str(leading(one, share)) for one in draws)
    return minus(
        f"{percent(share)} of the neurons: in {leading(means, share)} of {len(DOMAINS)} rows the domain "
        f"whose neurons are held loses most ({each} in the draws one by one); a domain loses {own:.3f} nats "
        f"by its own neurons and {chance:.3f} by random ones, on average."
    )


def finding(answer: dict) -> str:
    """At the smallest and the largest share: where the own domain loses most, and how much."""
    parts = []
    for share, rows in grouped(rows_of(answer), "share").items():
        own = [row for row in rows if row["neurons held"] != AT_RANDOM]
        (chance,) = (row for row in rows if row["neurons held"] == AT_RANDOM)
        domains = list(chance)[2:]
        first = sum(row[row["neurons held"]] == max(row[name] for name in domains) for row in own)
        mine = fmean(row[row["neurons held"]] for row in own)
        random = fmean(chance[name] for name in domains)
        parts.append((f"{round(1 / share)}", first, len(own), two(mine), two(random)))
    few, many = parts[0], parts[-1]
    return (
        f"Without the 1 in {many[0]} neurons that are most specific to a domain, the target loses most there "
        f"in {many[1]} of {many[2]} domains, {many[3]} nats per token on average, and {many[4]} without as "
        f"many at random; without 1 in {few[0]}, in {few[1]} of {few[2]}, {few[3]} and {few[4]}."
    )


STANDS = Basis({"draws": DRAWS, "domains": len(DOMAINS), "texts of each": EACH})
