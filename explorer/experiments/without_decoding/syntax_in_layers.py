"""Can syntax trees be read off the target's states?

Random functions in small Python, read leaf by leaf; the target never sees a tree. At some depths one linear
map to 64 numbers is trained, in which the distance between neighbouring leaves gives the height of their
branch, and the difference gives its label; the whole tree is rebuilt from these (AST-Probe). untrained: the
same on fresh layers over the target's own embeddings. F1: of (label, span of leaves), means over functions
that no probe has seen. opens, closes: the share of true nodes whose label and first, or last, leaf are found.
A causal state has not read what follows; the probes of the paper read models that have.
"""

from statistics import fmean

import torch

from decoders.lenses.binary_trees import Node, items, scores, wrong
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models import syntax_probes
from explorer.experiments.models.syntax_probes import Measured, Text
from explorer.experiments.pictures import Bars, Drawn, Trees
from explorer.experiments.reading import highest, rows_of, two
from explorer.tasks.random_functions import functions

# Training is expected to gain 20 points of F1. On six draws of functions it gained 14 to 22 after two layers,
# the best depth, 17 on average; 11 after four layers with the paper's rates, 2,000 functions and 128 numbers.
PAPERS = ()
TRAINED, HELD, TEST, EPOCHS = 600, 80, 100, 40  # functions; those of HELD decide when training stops
SHARES = (0, 1 / 6, 1 / 3, 2 / 3, 1)  # depths that are probed, as shares of the layers
SHOWN = "def f(xs):\n    return [x * 2 for x in sorted(xs)[1:] if x > 3]"


def run(models: Models) -> Result:
    """One row per depth."""
    target = models["target"]
    layers = target.model.config.get_text_config().num_hidden_layers
    levels = tuple(sorted({round(share * layers) for share in SHARES}))
    texts = [syntax_probes.read_text(target, code) for code in functions(TRAINED + HELD + TEST, 0)]
    shown = syntax_probes.read_text(target, SHOWN)
    known = texts[: TRAINED + HELD]
    names = syntax_probes.names_of(texts[:TRAINED])
    by_model: dict[str, list[Measured]] = {}
    trees, apart = [], []
    both = {"trained": target.model, "untrained": syntax_probes.untrained(target.model)}
    for which, model in progress.each(both.items()):
        with progress.part(0.4):
            states = syntax_probes.states_of(model, [*texts, shown], levels)
        by_model[which] = []
        for own in progress.each(states):
            probe = syntax_probes.fit_probe(known, own[: len(known)], HELD, EPOCHS, names)
            by_model[which].append(syntax_probes.measured(probe, texts[len(known) :], own[len(known) : -1]))
            inner = probe.projection.T @ probe.projection
            apart.append(float((inner - torch.eye(len(inner))).abs().max()))
            if which == "trained":
                trees.append(syntax_probes.recovered(probe, shown, own[-1]))
    table: list[list[Cell]] = []
    for at, level in enumerate(levels):
        mine, fresh = by_model["trained"][at], by_model["untrained"][at]
        row = [mine.f1, fresh.f1, mine.f1 - fresh.f1, mine.precision, mine.recall, mine.opens, mine.closes]
        table.append([level, *row])
    columns = ["layers", "F1", "F1 untrained", "gain", "precision", "recall", "opens", "closes"]
    best = max(range(len(levels)), key=lambda at: by_model["trained"][at].f1)
    lines = [
        Line(which, [[float(level), one.f1] for level, one in zip(levels, every, strict=True)])
        for which, every in by_model.items()
    ]
    lines += [
        Line("opens", [[float(row[0]), row[6]] for row in table]),
        Line("closes", [[float(row[0]), row[7]] for row in table]),
    ]
    chart = Chart("How much of a tree is recovered", "layers", "F1, or share", lines)
    bars = bar_picture(levels, by_model)
    drawn = tree_picture(shown, trees[best], levels[best])
    return Result(columns, table, conclusions(table, max(apart)), chart, pictures=[bars, drawn])


def bar_picture(levels: tuple[int, ...], by_model: dict[str, list[Measured]]) -> Bars:
    """F1 by depth, with one bar per model."""
    names = ["embeddings" if not level else f"after {level}" for level in levels]
    rows = [[round(one.f1, 3) for one in by_model[which]] for which in by_model]
    return Bars("F1 after each of some layers", "layers", "F1", names, list(by_model), rows)


def tree_picture(text: Text, tree: Node | str, level: int) -> Trees:
    """The true tree of a function above the recovered one, whose wrong nodes are marked."""
    true = Drawn("the true tree", [[*item, 0] for item in items(text.tree)])
    flags = wrong(tree, text.tree)
    title = f"recovered after {level} layers, F1 {scores(tree, text.tree)[2]:.2f}"
    again = Drawn(title, [[*item, int(flag)] for item, flag in zip(items(tree), flags, strict=True)])
    says = "a node for each label and span of leaves; dashed and crossed ones are not in the true tree"
    return Trees("A function and what was recovered of its tree", says, text.truth.leaves, [true, again])


def conclusions(table: list[list[Cell]], apart: float) -> list[str]:
    """The conclusions, as sentences."""
    best = max(table, key=lambda row: row[1])
    gain = max(table, key=lambda row: row[3])
    opens, closes = (fmean(row[at] for row in table) for at in (6, 7))
    return [
        f"The most is recovered after {best[0]} layers, F1 {best[1]:.2f}; fresh layers reach "
        f"{best[2]:.2f} there.",
        f"Training gains most after {gain[0]} layers, {100 * gain[3]:.0f} points of F1"
        f"{'' if gain[3] >= 0.2 else ', less than the 20 that were expected'}.",
        f"Over all depths {opens:.0%} of the nodes are found by label and first leaf, {closes:.0%} by label "
        f"and last leaf: where a node {'closes' if closes < opens else 'opens'} is harder to say.",
        f"The axes of every map stay at right angles: P'P differs from I by at most {apart:.3f}.",
    ]


def finding(answer: dict) -> str:
    """The best depth."""
    rows = rows_of(answer)
    best = highest(rows, "F1")
    return (
        f"One linear map recovers small Python's syntax trees from the states after "
        f"{best['layers']} layers with F1 {two(best['F1'])}, and with "
        f"{two(best['F1 untrained'])} from layers that were never trained."
    )


STANDS = Basis({"test functions": TEST}, trained=1)
