"""Which layers can a draft do without?

The target without half of its layers drafts for itself. The layers to leave out are chosen: evenly spaced;
those that change the direction of their input least (cosine); those whose removal alone costs least (alone);
and by EvoPress, an evolutionary search over whole sets, judged by the mean KL divergence from the full
target, or by how often the target would accept a token that the pruned one drafts. Random search is the same
search with fresh random sets instead of children, so both score the same number of sets on the same number of
texts. Each is run with many seeds. Every set of that many whole layers is scored on every text as well:
optimum is the best of all on the texts of the search, and the rank is the one on other texts. A last search
drops attention blocks and MLPs of different layers, as many of each. Then the pruned models draft for the
target in `speculative`, greedily. The table shows each search by the set of its median seed.
"""

from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

import torch

from decoders.engine.partial_forward import Blocks as Modules
from decoders.models.edited_names import Blocks
from decoders.models.editing.depth import left_out, without_blocks
from decoders.models.editing.evopress import Generation, evolve, generations_for
from decoders.models.loaded_model import LoadedModel
from decoders.trace.trace import Trace
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_pairs, by_wins
from explorer.experiments.measures import acceptance, tokens_per_forward
from explorer.experiments.models.small import own_text
from explorer.experiments.reading import rows_with, two

PAPERS = ("evopress",)
LENGTH, FEW, MANY, HELD_OUT = 48, 2, 12, 12  # tokens per row; rows of stage 0, of stage 1, and for the ranks
INITIAL, CHILDREN = 24, 12  # the authors: 64 and 32
SEEDS = 100  # of each search over whole layers, whose scores are looked up
PROMPTS, TOKENS, ASSISTANT = 6, 64, 4
COLUMNS = [
    "chosen",
    "left out",
    "rank",
    "KL",
    "acceptance, sampled",
    "acceptance, greedy",
    "tokens",
    "seeds",
    "found the optimum",
    "sets until then",
]
SCORES = ("KL", "refusal")  # what `Judge.scores` returns
SEARCHES = {  # name -> what is minimised, and whether children inherit
    "evolved": ("KL", True),
    "random search": ("KL", False),
    "for acceptance": ("refusal", True),
}


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

    def scores(self, blocks: Blocks, pick: torch.Tensor) -> torch.Tensor:
        """Mean divergence and refusal [2, rows] of each picked row, with these blocks removed."""
        with left_out(self.model, blocks):
            whole, thinned = self.whole[pick], self.logprobs(self.rows[pick])
        return torch.stack([how(whole, thinned).mean(-1) for how in (divergence, refusal)])

    def fitness(self, sets: list[Blocks], stage: int) -> list[float]:
        """For `evolve`, by divergence: fresh rows for each call, few in stage 0 and many in stage 1."""
        pick = fresh(self.draw, len(self.rows), stage)
        return [float(self.scores(one, pick)[0].mean()) for one in sets]


def fresh(draw: torch.Generator, rows: int, stage: int) -> torch.Tensor:
    """The numbers of random rows: few in stage 0 and many in stage 1."""
    return torch.randperm(rows, generator=draw)[: MANY if stage else FEW]


@dataclass(frozen=True)
class Looked:
    """The scores of every set of whole layers on every row, `table` [sets, rows], so that a search need not
    run the model.
    """

    sets: dict[Blocks, int]
    table: torch.Tensor

    def search(self, layers: int, drops: int, seed: int, inherits: bool) -> list[Generation]:
        """EvoPress with this seed; random search if not `inherits`."""
        draw = torch.Generator().manual_seed(seed)

        def fitness(some: list[Blocks], stage: int) -> list[float]:
            pick = fresh(draw, self.table.shape[1], stage)
            return self.table[[self.sets[one] for one in some]][:, pick].mean(1).tolist()

        sizes = {"initial": INITIAL, "children": CHILDREN, "inherits": inherits}
        return evolve(fitness, layers, drops, tied=True, seed=seed, **sizes)

    @property
    def optimum(self) -> Blocks:
        """The best of all sets on all rows."""
        return list(self.sets)[int(self.table.mean(1).argmin())]


def until(history: list[Generation], optimum: Blocks) -> int | None:
    """How many sets were scored when the optimum first was the parent; None if it does not end there."""
    if history[-1].parent != optimum:
        return None
    return next(one.scored for one in history if one.parent == optimum)


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


def simple_ways(judge: Judge, layers: int, drops: int) -> dict[str, Blocks]:
    """The sets that are chosen without a search."""
    pick = torch.arange(FEW)
    alone = [float(judge.scores(whole_layers((at,)), pick)[0].mean()) for at in range(layers)]
    step = layers / drops if drops else 1
    return {
        "evenly": whole_layers(tuple(int(step * at + step / 2) for at in range(drops))),
        "cosine": chosen_alone([-x for x in cosines(judge.model, judge.rows[pick])], drops),
        "alone": chosen_alone(alone, drops),
    }


def drafted(models: Models, blocks: Blocks) -> list[Trace]:
    """The traces of all prompts with the pruned target as the draft of the full one."""
    target = models["target"]
    thinned = LoadedModel(
        f"{target.name}:drop={blocks}", without_blocks(target.model, blocks), target.tokenizer
    )
    pair = {"target": target, "draft": thinned}
    settings = {"temperature": 0.0, "num_assistant_tokens": ASSISTANT}
    return [decoded(pair, "speculative", p, TOKENS, **settings) for p in prompts("stories", PROMPTS)]


def run(models: Models) -> Result:
    """One row per way to choose."""
    target = models["target"].model
    layers = models["target"].engine.layer_count
    drops = layers // 2
    with progress.part(0.05):
        rows = own_text(models, MANY * 2 + HELD_OUT, LENGTH).to(target.device)
    everything, judge = Judge(target, rows), Judge(target, rows[:-HELD_OUT])
    every = [whole_layers(some) for some in combinations(range(layers), drops)]
    whole = torch.arange(len(rows))
    table = torch.stack([everything.scores(one, whole) for one in progress.each(every, 0.7)], 1)
    known = {one: at for at, one in enumerate(every)}
    looked = {how: Looked(known, scores[:, :-HELD_OUT]) for how, scores in zip(SCORES, table, strict=True)}
    unseen = (
        table[0, :, -HELD_OUT:].mean(1).tolist()
    )  # the divergence of each set on texts that no search sees
    ranks = {one: rank for rank, one in enumerate(sorted(every, key=lambda one: unseen[known[one]]), 1)}
    ways: dict[str, tuple[Blocks, list]] = {
        name: (one, [None] * 3) for name, one in simple_ways(judge, layers, drops).items()
    }
    histories = {}
    for name, (how, inherits) in SEARCHES.items():
        ran = [looked[how].search(layers, drops, seed, inherits) for seed in range(SEEDS)]
        histories[name], optimum = ran, looked[how].optimum
        found = [sets for one in ran if (sets := until(one, optimum)) is not None]
        middle = sorted((one[-1].parent for one in ran), key=ranks.__getitem__)[len(ran) // 2]
        ways[name] = middle, [SEEDS, len(found), round(median(found)) if found else None]
    with progress.part(0.5):
        sizes = {"initial": INITIAL, "children": CHILDREN}
        ways["blocks"] = evolve(judge.fitness, layers, drops, **sizes)[-1].parent, [1, None, None]
    ways["best of all"] = min(every, key=ranks.__getitem__), [None] * 3
    rows_out: list[list[Cell]] = []
    wrote = {}
    for name, (blocks, searched) in progress.each(ways.items()):
        kl, refused = everything.scores(blocks, whole[-HELD_OUT:]).mean(1).tolist()
        wrote[name] = drafted(models, blocks)
        figures = [kl, 1 - refused, acceptance(wrote[name]), tokens_per_forward(wrote[name])]
        rows_out.append([name, str(blocks), ranks.get(blocks), *figures, *searched])
    tokens = {name: [tokens_per_forward([one]) for one in traces] for name, traces in wrote.items()}
    gaps = [a - b for a, b in zip(tokens["evolved"], tokens["alone"], strict=True)]
    best = looked["KL"].optimum
    hits = [[one[-1].parent == best for one in histories[name]] for name in ("evolved", "random search")]
    won, lost = (sum(a > b for a, b in zip(*pair, strict=True)) for pair in (hits, hits[::-1]))
    compared = [
        by_wins("seeds that find the optimum, evolution against random search", won, lost, SEEDS),
        by_pairs("tokens per target forward, evolved against alone", gaps),
    ]
    lines = [Line(name, found_by(histories[name], best)) for name in ("evolved", "random search")]
    chart = Chart("Searches that have reached the optimum", "sets scored", "share of the seeds", lines)
    says = conclusions(rows_out, len(every), layers, drops, histories["evolved"][0][-1].scored)
    return Result(COLUMNS, rows_out, says, chart, compared=compared)


def found_by(histories: list[list[Generation]], optimum: Blocks) -> list[list[float]]:
    """The share of the searches whose parent is the optimum, generation by generation."""
    return [
        [float(alike[0].scored), fmean(one.parent == optimum for one in alike)]
        for alike in zip(*histories, strict=True)
    ]


def conclusions(table: list[list[Cell]], count: int, layers: int, drops: int, scored: int) -> list[str]:
    """The conclusions, as sentences."""
    rows = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in table}
    ranks = ", ".join(f"{name} {row['rank']}" for name, row in rows.items() if row["rank"] is not None)
    says = [f"Ranks among all {count:,} sets of {drops} of {layers} layers, on other texts: {ranks}."]
    for name in SEARCHES:
        row = rows[name]
        after = row["sets until then"]
        says.append(
            f"{name.capitalize()}: {row['found the optimum']} of {row['seeds']} seeds end at the best set of "
            f"all{f', after a median of {after} sets' if after else ''}; each scores {scored} sets in "
            f"{generations_for(layers, drops)} generations."
        )
    blocks, whole = rows["blocks"], rows["evolved"]
    better = "a lower" if blocks["KL"] < whole["KL"] else "no lower"
    return [
        *says,
        f"Attentions and MLPs chosen apart ({blocks['left out']}, one seed) have {better} divergence than "
        f"whole layers: {blocks['KL']:.3f} and {whole['KL']:.3f} nats. As a plain model such a draft saves "
        "no time, since its silent blocks are computed; self-drafts such as swift leave them out.",
        f"Any of these sets is a draft: --draft MODEL:drop={whole['left out']}.",
    ]


def finding(answer: dict) -> str:
    """Evolution against random search, and against the layers whose removal alone costs least."""
    evolved, chance, alone = (
        rows_with(answer, "chosen", name)[0] for name in ("evolved", "random search", "alone")
    )
    return (
        f"Of {evolved['seeds']} evolutionary searches, {evolved['found the optimum']} end at the best of all "
        f"sets, and {chance['found the optimum']} of as many random searches with the same budget; the "
        f"evolved draft yields {two(evolved['tokens'])} tokens per target forward, and one without the "
        f"layers that cost least alone {two(alone['tokens'])}."
    )


STANDS = Basis({"seeds": SEEDS, "prompts": PROMPTS})
