"""Does every token need all of the model?

The target's first layers get a small feed-forward block beside each big one and are trained with random
routes, so that all of them work; the published model has twelve layers and is trained so from the start. An
oracle then tries every route for each token of unseen text, where earlier tokens took all big blocks, and
keeps the one with the lowest loss: it has seen the answer. As controls, the same choice is made by the loss
of a wrong token (one from elsewhere in the texts), and by what was best for the token before; the table gives
the true loss of these routes, and that of the one route that is best for all tokens together. A router that
knows only the state is trained for several budgets: cross-entropy, plus the squared deviation of the mean
share of big blocks from its budget. Losses are in nats per token.
"""

import re

import torch
from torch.nn import functional as F

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import FAR_ABOVE, Basis
from explorer.experiments.models.duo import Duo, Router, at_random, bits
from explorer.experiments.models.small import fit, next_loss, own_text, words
from explorer.experiments.pictures import Heat, Strip, TokenMap
from explorer.experiments.reading import lowest, rows_of, two

PAPERS = ("duo-llm",)
LAYERS, SMALLER = 6, 16  # the shipped target was trained with an exit after six layers
TEXTS, HELD_OUT, LENGTH = 464, 16, 128
STEPS, ROUTER_STEPS, BATCH = 200, 60, 8
RATE, ROUTER_RATE = 1e-3, 0.02
SHARPEST = 10.0  # sharpness of a router's softmax at the end of training; it starts at 1
HOLDS = 100.0  # weight of the budget's penalty, large enough that the share stays close to the budget
ROUTES = 16  # routes whose logits are computed at a time
KINDS = ("oracle", "by a wrong token", "by the token before")
SPENT, LURED = "oracle: % big, layer by layer", "by a wrong token: % big, layer by layer"
COLUMNS = ["big blocks", "routes", "oracle", "one route", *KINDS[1:], "random", "router", "router's share"]
COLUMNS += [SPENT, LURED]
SHOWN = 28  # tokens in the picture


def trained(models: Models, rows: torch.Tensor) -> Duo:
    """The model with two blocks per layer, trained with random routes."""
    model = models["target"].model
    torch.manual_seed(0)
    duo = Duo(model, min(LAYERS, model.config.num_hidden_layers), SMALLER)
    fit(duo.parameters(), lambda some: next_loss(duo(some, at_random), some), rows, STEPS, BATCH, RATE)
    return duo.requires_grad_(False)


def routed(duo: Duo, rows: torch.Tensor, budget: float) -> Router:
    """A router trained to use a share `budget` of the big blocks, over all layers together."""
    router = Router(len(duo.small), duo.inner.config.hidden_size)
    sharpness = iter(torch.linspace(1.0, SHARPEST, ROUTER_STEPS).tolist())

    def loss(some: torch.Tensor) -> torch.Tensor:
        shares, sharp = [], next(sharpness)

        def choose(layer: int, state: torch.Tensor) -> torch.Tensor:
            shares.append(router(layer, state, sharp))
            return shares[-1]

        logits = duo(some, choose, duo.reference(some))
        return next_loss(logits, some) + HOLDS * (torch.stack(shares).mean() - budget) ** 2

    fit(router.parameters(), loss, rows, ROUTER_STEPS, BATCH // 2, ROUTER_RATE)
    return router


@torch.no_grad()
def judged(duo: Duo, router: Router, rows: torch.Tensor) -> tuple[float, float]:
    """(loss, share of big blocks) when a router makes hard decisions."""
    shares = []

    def choose(layer: int, state: torch.Tensor) -> torch.Tensor:
        shares.append(router(layer, state, SHARPEST).round())
        return shares[-1]

    logits = duo(rows[:, :-1], choose, duo.reference(rows[:, :-1]))
    losses = F.cross_entropy(logits.transpose(1, 2), rows[:, 1:], reduction="none")
    return losses[:, 1:].mean().item(), torch.stack(shares)[:, :, 1:].mean().item()


@torch.no_grad()
def losses(duo: Duo, rows: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The loss [K, 2^L, B, T - 1] of each of K next tokens [K, B, T - 1] on every route."""
    batches = []
    for row, tokens in progress.each(zip(rows, wanted.unbind(1), strict=True)):
        some = []
        for states in duo.every(row[:-1]).split(ROUTES):
            logits = duo.logits(states)  # [R, T - 1, V]
            predicted = logits[:, torch.arange(len(row) - 1), tokens]  # [R, K, T - 1]
            some.append(logits.logsumexp(-1)[:, None] - predicted)
        batches.append(torch.cat(some).transpose(0, 1))
    return torch.stack(batches, 2)


def picked(true: torch.Tensor, wrong: torch.Tensor) -> dict[str, torch.Tensor]:
    """The route [B, T - 1] that each choice takes for each token that has a predecessor. true, wrong [R, B,
    T]: the losses of the true and of a wrong next token.
    """
    best = true.argmin(0)
    one = true[:, :, 1:].mean((1, 2)).argmin()
    return {
        "oracle": best[:, 1:],
        "one route": one.expand_as(best[:, 1:]),
        "by a wrong token": wrong.argmin(0)[:, 1:],
        "by the token before": best[:, :-1],
    }


def cost(losses: torch.Tensor, route: torch.Tensor) -> float:
    """The mean of losses [R, B, T] on the routes [B, T - 1] of the tokens that have a predecessor."""
    return losses[:, :, 1:].gather(0, route[None]).mean().item()


def widened(true: torch.Tensor) -> list[tuple[int, float]]:
    """(number of allowed routes, the oracle's loss), for routes added in random order."""
    order = torch.randperm(len(true), generator=torch.Generator().manual_seed(0))
    counts = [2**n for n in range(len(true).bit_length())]
    return [(n, true[order[:n], :, 1:].amin(0).mean().item()) for n in counts]


def by_layer(routes: torch.Tensor, route: torch.Tensor) -> str:
    """The share of tokens that take the big block, in percent, layer by layer. routes [R, L], route
    [B, T].
    """
    return " ".join(f"{100 * share:.0f}" for share in routes[route.flatten()].float().mean(0).tolist())


def drawn(tokens: list[str], taken: dict[str, torch.Tensor], true: torch.Tensor) -> list[TokenMap]:
    """The routes of a text's first tokens that have a predecessor, layer by layer, the last layer on top, and
    the losses of a token's routes. taken: way of choosing -> blocks [T, L]; true [R, T].
    """
    tokens, count = tokens[1 : SHOWN + 1], next(iter(taken.values())).shape[1]
    rows = [f"layer {at}" for at in range(count, 0, -1)]
    maps = [
        TokenMap(
            f"Routes {how}, half of the blocks big",
            "1: the big block, 0: the small one",
            tokens,
            rows,
            blocks[: len(tokens)].T.flip(0).float().tolist(),
        )
        for how, blocks in taken.items()
    ]
    some = true[:, 1 : len(tokens) + 1].sort(0).values
    spread = [some[0], some[len(some) // 2], some[-1], true[-1, 1 : len(tokens) + 1]]
    names, high = ["best route", "middle one", "worst", "all big"], float(some[-1].max())
    costs = torch.stack(spread).tolist()
    title, says = "What a token's routes cost", "nats for the next token"
    return [*maps, TokenMap(title, says, tokens, names, costs, high)]


def shares(table: list[list[Cell]]) -> Heat:
    """How the oracle distributes its budget over the layers' big blocks."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    spent = [[[float(share) / 100] for share in row[SPENT].split()] for row in rows]
    strips = [Strip(f"{row['big blocks']} big", [""], one) for row, one in zip(rows, spent, strict=True)]
    columns = [f"layer {at}" for at in range(1, len(spent[0]) + 1)]
    title, says = "Where the oracle spends its big blocks", "share of tokens that take the big one"
    return Heat(title, says, columns, strips, 0.0, 1.0)


def run(models: Models) -> Result:
    """One row per number of big blocks."""
    with progress.part(0.05):
        rows, held = own_text(models, TEXTS + HELD_OUT, LENGTH).split([TEXTS, HELD_OUT])
    with progress.part(0.4):
        duo = trained(models, rows)
    layers, generator = len(duo.small), torch.Generator().manual_seed(0)
    wanted = held[:, 1:]
    others = wanted.flatten()[torch.randperm(wanted.numel(), generator=generator)].view_as(wanted)
    with progress.part(0.4):
        true, wrong = losses(duo, held, torch.stack([wanted, others]))
    routes, table, lured, maps = bits(layers), [], [], []
    for big in progress.each(range(layers + 1)):
        group = routes.sum(1) == big
        choices = picked(true[group], wrong[group])
        costs = [cost(true[group], route) for route in choices.values()]
        if big == layers // 2:
            kinds = {"by the oracle": "oracle", "by a wrong token": "by a wrong token"}
            taken = {how: routes[group][choices[name][0]] for how, name in kinds.items()}
            maps = drawn(words(models, held[0, :-1]), taken, true[:, 0])
        one, own = (cost(wrong[group], choices[name]) for name in ("one route", "by a wrong token"))
        lured.append(one - own)
        routers = judged(duo, routed(duo, rows, big / layers), held) if 0 < big < layers else (None, None)
        table.append(
            [
                big,
                int(group.sum()),
                *costs,
                true[group][:, :, 1:].mean().item(),
                *routers,
                by_layer(routes[group], choices["oracle"]),
                by_layer(routes[group], choices["by a wrong token"]),
            ]
        )
    lines = [Line(COLUMNS[at], [[row[0], row[at]] for row in table]) for at in range(2, 8)]
    chart = Chart("What a choice of routes wins", "big blocks", "nats per token", lines)
    says = conclusions(table, lured[layers // 2], true)
    return Result(COLUMNS, table, says, chart, pictures=[*maps, shares(table)])


def conclusions(table: list[list[Cell]], lured: float, true: torch.Tensor) -> list[str]:
    """The conclusions, as sentences. lured: what the choice by a wrong token gains for this wrong token over
    the one route, with half of the blocks big. true [R, B, T].
    """
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table]
    layers, half, best = len(rows) - 1, rows[len(rows) // 2], lowest(rows, "oracle")
    beats = next(row["big blocks"] for row in rows if row["oracle"] <= rows[-1]["oracle"])
    gain, *controls = (half["one route"] - half[name] for name in KINDS)
    kept = max(0.0, *controls) / gain if gain > 0 else 0.0
    spread = [part.mean().item() for part in true[:, :, 1:].sort(0).values[[0, len(true) // 2, -1]]]
    spends = "; ".join(f"{row['big blocks']}: {row[SPENT]} (wrong token: {row[LURED]})" for row in rows[1:-1])
    says = [
        f"With all blocks big the loss is {rows[-1]['oracle']:.3f}, with all small {rows[0]['oracle']:.3f}. "
        f"The oracle's is {rows[1]['oracle']:.3f} with one big block, no higher than with all big from "
        f"{beats} on, and lowest with {best['big blocks']}: {best['oracle']:.3f}.",
        "But it has seen the answer, and the lowest of many losses is always low: with "
        f"{half['big blocks']} big it gains {gain:.3f} over the one route that is best for all tokens "
        f"together, and asked for a wrong token it makes that one more likely by {lured:.3f}.",
        f"Chosen by the wrong token the routes change the true one's loss by {-controls[0]:+.3f} against the "
        f"one route, chosen by what was best for the token before by {-controls[1]:+.3f}: the controls keep "
        f"{kept:.0%} of what the oracle seems to win.",
        f"One route for all gains {half['random'] - half['one route']:.3f} over a random route without "
        "knowing any token: blocks differ in worth.",
        f"Tokens with a big block in each layer, in percent, by the number of big blocks: {spends}.",
        "Allowed more routes, in random order, the oracle's loss can only fall: "
        + ", ".join(f"{loss:.3f} with {n}" for n, loss in widened(true))
        + ".",
        f"Of all routes of a token the best costs {spread[0]:.3f} on average, the median one "
        f"{spread[1]:.3f}, the worst {spread[2]:.3f}.",
    ]
    trained = [row for row in rows if row["router"] is not None]
    if trained:
        off = max(abs(row["router's share"] - row["big blocks"] / layers) for row in trained)
        gains = [
            f"{row['router'] - row['one route']:+.3f} with {row['big blocks']} "
            f"(against random routes {row['router'] - row['random']:+.3f})"
            for row in trained
        ]
        says.append(
            f"The routers' shares of big blocks are within {off:.3f} of their budgets. Against the one route "
            f"they change the loss by {', '.join(gains)}."
        )
    return [re.sub(r"-(?=\d)", "−", one) for one in says]


def finding(answer: dict) -> str:
    """The oracle's best number of big blocks, against all blocks and a router."""
    rows = rows_of(answer)
    whole, best = rows[-1], lowest(rows, "oracle")
    routed = [row["router"] for row in rows if row["router"] is not None]
    than = "below" if best["oracle"] < whole["oracle"] else "not below"
    return (
        f"An oracle that has seen the answer reaches a loss of {two(best['oracle'])} nats with "
        f"{best['big blocks']} of {whole['big blocks']} big blocks, {than} the {two(whole['oracle'])} of the "
        f"whole model; a router that has not seen it reaches {two(min(routed))} at best."
    )


STANDS = Basis({"held-out texts": HELD_OUT}, trained=1, unfinished=FAR_ABOVE)
