"""When can the most likely token be trusted?

At every token of known stories and correct programs: how uncertain is the model, and is that token its most
likely one? A logistic curve through the answers gives the entropy above which AdaDec pauses to look ahead.
"""

import math

import torch

from decoders import datastore
from decoders.engine.tree import Tree
from decoders.logits.distributions import entropies, log_softmax
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.reading import percent, rows_of, two
from explorer.tasks import HELD_OUT_SEED, problems

PAPERS = ("towards-better-code-generation",)
STORIES = "stories"
KINDS = (STORIES, "list_program", "python")
COUNT = 60  # texts of each kind
OPENING = 4  # tokens of a story that serve as prompt
WIDTH = 0.25  # nats per bin of the chart
NEWTON = 60  # steps of Newton's method, more than enough to converge


def references(model, kind: str, count: int) -> list[tuple[list[int], int]]:
    """Up to `count` texts: their tokens, and the index from which on the model is asked."""
    if kind == STORIES:
        stories = [model.encode(text) for text in datastore.texts(STORIES)[:count]]
        return [(tokens, min(OPENING, len(tokens) - 1)) for tokens in stories]
    pairs = []
    for problem in problems(kind, count, HELD_OUT_SEED):
        prompt = model.encode(problem.prompt)
        pairs.append((prompt + model.encode_after(prompt, problem.answer), len(prompt)))
    return pairs


def positions(model, text: list[int], start: int) -> list[tuple[float, bool]]:
    """(entropy in nats, whether the text's own token is the most likely one) at each position from `start`
    on.
    """
    text = text[: model.context]
    if start >= len(text):
        return []
    scorer = model.engine.attach(Tree(text))
    try:
        rows = log_softmax(scorer.score(list(range(start - 1, len(text) - 1))))  # [T, V]
    finally:
        scorer.close()
    hits = rows.argmax(-1) == torch.tensor(text[start:], device=rows.device)
    return list(zip(entropies(rows).tolist(), hits.tolist(), strict=True))


def fitted(entropies: torch.Tensor, hits: torch.Tensor) -> tuple[float, float]:
    """(w, b) of the logistic regression y ~ w H + b, with a penalty of w² / 2 so that it always exists."""
    rows = torch.stack([entropies, torch.ones_like(entropies)], 1)  # [N, 2]
    weights, ridge = torch.zeros(2, dtype=torch.float64), torch.diag(torch.tensor([1.0, 1e-6])).double()
    for _ in range(NEWTON):
        p = (rows @ weights).sigmoid()
        gradient = rows.T @ (hits - p) - ridge @ weights
        curvature = (rows.T * (p * (1 - p))) @ rows + ridge
        step = torch.linalg.solve(curvature, gradient)
        weights = weights + step.clamp(-5.0, 5.0)
    return float(weights[0]), float(weights[1])


def learned(pairs: list[tuple[float, bool]]) -> tuple[float, float, float, float] | None:
    """(tau, w, b, accuracy on the held-out fifth), fitted on equally many hits and misses of the rest. None
    if there are no hits or no misses, or if uncertain rows are not the worse ones.
    """
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0)).tolist()
    train, held = order[: len(pairs) * 4 // 5], order[len(pairs) * 4 // 5 :]
    hits, misses = ([i for i in train if pairs[i][1] is right] for right in (True, False))
    fewer = min(len(hits), len(misses))
    if not fewer or not held:
        return None
    chosen = hits[:fewer] + misses[:fewer]  # in random order already
    w, b = fitted(*(torch.tensor([float(pairs[i][k]) for i in chosen]).double() for k in (0, 1)))
    if w >= 0.0:
        return None

    def accuracy(tau: float) -> float:
        return sum((pairs[i][0] < tau) == pairs[i][1] for i in held) / len(held)

    # Ties go to the one nearest to 0.5.
    cuts = sorted((n / 100 for n in range(1, 100)), key=lambda p: abs(p - 0.5))
    taus = [(math.log(p / (1 - p)) - b) / w for p in cuts]
    tau = max(taus, key=accuracy)
    return tau, w, b, accuracy(tau)


def binned(pairs: list[tuple[float, bool]]) -> list[list[float | None]]:
    """[entropy, share of hits] of each bin, None for empty bins."""
    last = int(max(entropy for entropy, _ in pairs) / WIDTH)
    bins: list[list[bool]] = [[] for _ in range(last + 1)]
    for entropy, hit in pairs:
        bins[int(entropy / WIDTH)].append(hit)
    return [[(i + 0.5) * WIDTH, sum(hits) / len(hits) if hits else None] for i, hits in enumerate(bins)]


def run(models: Models) -> Result:
    """The threshold for each kind of text and for all of them."""
    target = models["target"]
    by_kind = {
        kind: [
            at for text in progress.each(references(target, kind, COUNT)) for at in positions(target, *text)
        ]
        for kind in progress.each(KINDS)
    }
    every = [one for pairs in by_kind.values() for one in pairs]
    rows, says = [], []
    for name, pairs in {**by_kind, "all": every}.items():
        limit = learned(pairs)
        share = sum(hit for _, hit in pairs) / len(pairs)
        pauses = None if limit is None else sum(entropy >= limit[0] for entropy, _ in pairs) / len(pairs)
        rows.append([name, len(pairs), share, limit and limit[0], limit and limit[3], pauses])
    limit, measured = learned(every), binned(every)
    lines = [Line("measured", measured)] if len(measured) > 1 else []
    if limit is None:
        says.append("The entropy does not tell right from wrong here: there is no limit to learn.")
    else:
        tau, w, b, accuracy = limit
        says.append(
            f"Set AdaDec's tau to {tau:.2f}: below it the most likely token is right, above it wrong, in "
            f"{accuracy:.0%} of the held-out positions; AdaDec then pauses at "
            f"{rows[-1][-1]:.0%} of the tokens."
        )
        curve = [[x, 1 / (1 + math.exp(-(w * x + b)))] for x, _ in measured]
        lines += [Line("fitted to equally many of both", curve)] if len(curve) > 1 else []
    columns = ["texts", "positions", "most likely is right", "limit (nats)", "held-out accuracy", "pauses"]
    chart = Chart("The most likely token is right", "entropy (nats)", "share", lines) if lines else None
    return Result(columns, rows, says, chart)


def finding(answer: dict) -> str:
    """The threshold over all texts."""
    row = rows_of(answer)[-1]
    limit = row["limit (nats)"]
    if limit is None:
        return "No entropy was found above which the most likely token is usually wrong."
    return (
        f"Above an entropy of {two(limit)} nats the most likely token is usually wrong: this rule holds for "
        f"{percent(row['held-out accuracy'])} of unseen tokens, and {percent(row['pauses'])} of all tokens "
        "are above the limit."
    )


def stands(answer: dict) -> Basis:
    """Texts, half of whose tokens are held out."""
    return Basis({"texts": COUNT * len(KINDS), "tokens": rows_of(answer)[-1]["positions"]})
