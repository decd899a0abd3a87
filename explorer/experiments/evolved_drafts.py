"""Which layers can a draft do without?

The target without half of its layers drafts for itself. The layers to leave out are chosen in four ways:
evenly spaced; those that change the direction of their input least (cosine); those whose removal alone costs
least (divergence); and by EvoPress, an evolutionary search over whole sets, judged by the mean KL divergence
from the full target, or by how often the target would accept a token that the pruned one drafts. Every set of
that many whole layers is tried as well, so that the rank of each choice is known. A last search drops
attention blocks and MLPs of different layers, as many of each. Then the pruned models draft for the target in
`speculative`, greedily. Text: sampled from the target, with other rows for the final figures than for the
search.
"""

from collections.abc import Callable
from itertools import combinations
from statistics import fmean

import torch

from decoders.engine.partial_forward import Blocks as Modules
from decoders.models.edited_names import Blocks
from decoders.models.editing.depth import left_out, without
from decoders.models.editing.evopress import Generation, evolve, generations_for
from decoders.models.loaded_model import LoadedModel
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import acceptance, decoded, prompts, tokens_per_forward
from explorer.experiments.models.small import own_text
from explorer.experiments.reading import percent, rows_with, two

PAPERS = ("evopress",)
LENGTH, FEW, MANY, HELD_OUT = (
    48,
    2,
    12,
    12,
)  # tokens per row; rows of stage 0, of stage 1, and of the final evaluation
INITIAL, CHILDREN = 24, 12  # the authors: 64 and 32
PROMPTS, TOKENS, ASSISTANT = 3, 32, 4
Score = Callable[
    [torch.Tensor, torch.Tensor], torch.Tensor
]  # log-probs of full and pruned model [N, T, V] -> [N, T]


def divergence(whole: torch.Tensor, thinned: torch.Tensor) -> torch.Tensor:
    """KL(full || pruned) at each position, from log-probabilities [N, T, V]."""
    return (whole.exp() * (whole - thinned)).sum(-1)


def refusal(whole: torch.Tensor, thinned: torch.Tensor) -> torch.Tensor:
    """The probability that a token sampled from the pruned model is rejected: 1 - sum min(p, q)."""
    return 1 - torch.minimum(whole, thinned).exp().sum(-1)


class Judge:
    """Scores sets of blocks by the pruned target's predictions on rows [N, T], relative to the full
    target's.
    """

    def __init__(self, model: torch.nn.Module, rows: torch.Tensor):
        self.model, self.rows = model, rows
        self.whole = self.logprobs(rows)
        self.draw = torch.Generator().manual_seed(0)

    @torch.no_grad()
    def logprobs(self, rows: torch.Tensor) -> torch.Tensor:
        """The model's log-probabilities [N, T, V] along rows [N, T]."""
        return self.model(input_ids=rows).logits.float().log_softmax(-1)

    def score(self, blocks: Blocks, how: Score, pick: torch.Tensor) -> float:
        """The mean of `how` over the picked rows, with these blocks removed."""
        with left_out(self.model, blocks):
            return float(how(self.whole[pick], self.logprobs(self.rows[pick])).mean())

    def fitness(self, how: Score) -> Callable[[list[Blocks], int], list[float]]:
        """For `evolve`: fresh rows for each call, few in stage 0 and many in stage 1."""

        def of(sets: list[Blocks], stage: int) -> list[float]:
            pick = torch.randperm(len(self.rows), generator=self.draw)[: MANY if stage else FEW]
            return [self.score(one, how, pick) for one in sets]

        return of


def whole_layers(layers: tuple[int, ...]) -> Blocks:
    """Both blocks of these layers."""
    return Blocks(frozenset(layers), frozenset(layers))


@torch.no_grad()
def cosines(model: torch.nn.Module, rows: torch.Tensor) -> list[float]:
    """The mean cosine between the input and the output of each layer."""
    seen: list[float] = []

    def hear(layer: torch.nn.Module, inputs: tuple, output: torch.Tensor | tuple) -> None:
        after = output[0] if isinstance(output, tuple) else output
        seen.append(float(torch.cosine_similarity(inputs[0], after, -1).mean()))

    hooks = [layer.register_forward_hook(hear) for layer in Modules(model).layers]
    try:
        model(input_ids=rows)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def chosen_alone(scores: list[float], drops: int) -> Blocks:
    """The `drops` layers with the lowest scores, as blocks."""
    return whole_layers(tuple(sorted(range(len(scores)), key=scores.__getitem__)[:drops]))


def chosen_sets(judge: Judge, layers: int, drops: int) -> tuple[dict[str, Blocks], list[Generation]]:
    """The set that each way finds, and the progress of the evolution by divergence."""
    pick = torch.arange(FEW)
    alone = [judge.score(whole_layers((at,)), divergence, pick) for at in progress.each(range(layers), 0.1)]
    step = layers / drops if drops else 1
    ways = {
        "evenly": whole_layers(tuple(int(step * at + step / 2) for at in range(drops))),
        "cosine": chosen_alone([-x for x in cosines(judge.model, judge.rows[pick])], drops),
        "alone": chosen_alone(alone, drops),
    }
    sizes = {"initial": INITIAL, "children": CHILDREN}
    searches = {
        "evolved": (divergence, True),
        "for acceptance": (refusal, True),
        "blocks": (divergence, False),
    }
    histories = {}
    for name, (how, tied) in progress.each(searches.items()):
        histories[name] = evolve(judge.fitness(how), layers, drops, tied=tied, **sizes)
        ways[name] = histories[name][-1].parent
    return ways, histories["evolved"]


def drafted(models: Models, blocks: Blocks) -> tuple[float | None, float]:
    """(acceptance, tokens per target forward) with the pruned target as the draft of the full one."""
    target = models["target"]
    thinned = LoadedModel(f"{target.name}:drop={blocks}", without(target.model, blocks), target.tokenizer)
    pair = {"target": target, "draft": thinned}
    settings = {"temperature": 0.0, "num_assistant_tokens": ASSISTANT}
    traces = [decoded(pair, "speculative", p, TOKENS, **settings) for p in prompts("stories", PROMPTS)]
    return acceptance(traces), tokens_per_forward(traces)


def run(models: Models) -> Result:
    """One row per way to choose."""
    target = models["target"].model
    layers = models["target"].engine.layer_count
    drops = layers // 2
    with progress.part(0.05):
        rows = own_text(models, MANY * 2 + HELD_OUT, LENGTH).to(target.device)
    judge, last = Judge(target, rows[:-HELD_OUT]), Judge(target, rows[-HELD_OUT:])
    with progress.part(0.5):
        ways, history = chosen_sets(judge, layers, drops)
    pick = torch.arange(FEW)
    every = [whole_layers(some) for some in combinations(range(layers), drops)]
    scores = [last.score(one, divergence, pick) for one in progress.each(every, 0.7)]
    ways["best of all"] = every[scores.index(min(scores))]
    table: list[list[Cell]] = []
    for name, blocks in progress.each(ways.items()):
        tied = blocks.attention == blocks.mlp
        rank = sum(x < scores[every.index(blocks)] for x in scores) + 1 if tied else None
        whole = torch.arange(HELD_OUT)
        accepted, tokens = drafted(models, blocks)
        table.append(
            [
                name,
                str(blocks),
                rank,
                last.score(blocks, divergence, whole),
                1 - last.score(blocks, refusal, whole),
                accepted,
                tokens,
            ]
        )
    columns = ["chosen", "left out", "rank", "KL", "acceptance, sampled", "acceptance, greedy", "tokens"]
    points = [[float(at), one.fitness] for at, one in enumerate(history)]
    middle = fmean(scores)
    lines = [
        Line("parent", points),
        Line("mean of all sets", [[0.0, middle], [float(len(points) - 1), middle]]),
        Line("best of all sets", [[0.0, min(scores)], [float(len(points) - 1), min(scores)]]),
    ]
    chart = Chart("The evolution", "generation", "KL from the whole target, nats", lines)
    return Result(columns, table, conclusions(table, len(every), layers, drops, history), chart)


def conclusions(
    table: list[list[Cell]], count: int, layers: int, drops: int, history: list[Generation]
) -> list[str]:
    """The conclusions, as sentences."""
    rows = {row[0]: row for row in table}
    ranks = ", ".join(f"{name} {row[2]}" for name, row in rows.items() if row[2] is not None)
    other = rows["blocks"]
    better = "a lower" if other[3] < rows["evolved"][3] else "no lower"
    first, last = history[0].parent, history[-1].parent
    return [
        f"Ranks among all {count:,} sets of {drops} of {layers} layers: {ranks}.",
        f"The evolution looked at {history[-1].scored} sets in {generations_for(layers, drops)} generations "
        f"and went from {first} to {last}.",
        f"Attentions and MLPs chosen apart ({other[1]}) have {better} divergence than whole layers: "
        f"{other[3]:.3f} and {rows['evolved'][3]:.3f} nats. As a plain model such a draft saves no time, "
        "since its silent blocks are computed; self-drafts such as swift leave them out.",
        f"Any of these sets is a draft: --draft MODEL:drop={rows['evolved'][1]}.",
    ]


def finding(answer: dict) -> str:
    """Evolution against the layers whose removal alone costs least."""
    (evolved,), (alone,) = (rows_with(answer, "chosen", name) for name in ("evolved", "alone"))
    return (
        f"The layers that evolution leaves out rank number {evolved['rank']} of all sets and make a draft of "
        f"which {percent(evolved['acceptance, greedy'] or 0.0)} is accepted ({two(evolved['tokens'])} tokens "
        f"per target forward); those that cost least alone rank number {alone['rank']} with "
        f"{percent(alone['acceptance, greedy'] or 0.0)}."
    )
