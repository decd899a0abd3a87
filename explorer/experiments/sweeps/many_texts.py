"""How many texts does one budget buy?

The same number of forwards goes to a lattice, with each of its three ways to expand, with and without
merging, to beam search, and to nucleus samples. How many different texts result, and how likely is a token of
a randomly chosen text to the model itself? A lattice reuses scores that were computed after another prefix,
so a path's score is not its own log-probability: how far are the two apart?
"""

import math
import random
from dataclasses import dataclass
from itertools import product
from typing import Any

from decoders.search.beam.hypotheses import returned
from decoders.search.best_first.lattice import FRONTIERS, Graph
from decoders.trace.events import Propose, Verdict
from decoders.trace.trace import Trace
from explorer.experiments import Models
from explorer.experiments.asked import decoded, own_logprob, prompts
from explorer.experiments.reading import Row, highest, rows_of
from explorer.experiments.sweep import Difference, Setting, Sweep, titled

PAPERS = ("massive-scale-decoding-for-text-generation-using",)
PROMPTS, TOKENS, BEAMS, DRAWN = 6, 16, 8, 8  # the budget: as many forwards as BEAMS texts of TOKENS tokens
MAX_PATHS = 200  # maximum paths of a lattice per end node from which texts are taken
COUNT = "paths or texts"
Text = tuple[int, ...]
Scored = list[tuple[Text, float | None]]  # texts, with a score where they have one


def graph_of(trace: Trace) -> tuple[Graph, list[int], dict[int, tuple[int, float]]]:
    """The graph of a lattice's trace, its ends, and each node's token and log-probability."""
    graph, ends, nodes = Graph(len(trace.prompt) - 1), [], {}
    for event in (event for step in trace.steps for event in step.events):
        if isinstance(event, Propose) and event.node not in nodes:
            nodes[event.node] = (event.token, event.logprob)
            graph.link(event.node, event.parent)
        elif isinstance(event, Verdict) and event.status == "merged":
            graph.absorb(event.node, event.into)
        elif isinstance(event, Verdict) and event.status == "finished":
            ends.append(event.node)
    return graph, ends, nodes


def lattice_texts(trace: Trace) -> tuple[int, list[tuple[Text, float]]]:
    """(number of paths of a lattice, (text, score in the graph) of the first MAX_PATHS to each end)."""
    graph, ends, nodes = graph_of(trace)
    known: dict[int, int] = {graph.root: 1}
    last = sorted({graph.now(node) for node in ends})
    paths = [path for node in last for path in graph.paths(node, MAX_PATHS)]
    texts = [(tuple(nodes[n][0] for n in path), sum(nodes[n][1] for n in path)) for path in paths]
    return sum(graph.count(node, known) for node in last), texts


def candidates_of(models: Models, way: str, prompt: str, given: dict) -> tuple[int, Scored]:
    """(number of texts or paths that a way yields, texts with their scores)."""
    if way == "lattice":
        return lattice_texts(decoded(models, way, prompt, TOKENS, max_forwards=BEAMS * TOKENS, **given))
    if way == "beam":
        wanted = {"num_beams": BEAMS, "num_return_sequences": BEAMS, "length_penalty": 0.0}
        beams = returned(decoded(models, way, prompt, TOKENS, **wanted))
        return len(beams), [(tuple(text), score) for text, score in beams]
    drawn = [decoded(models, "sample", prompt, TOKENS, seed, top_p=0.9).output() for seed in range(BEAMS)]
    return len(drawn), [(tuple(text), None) for text in drawn]


@dataclass(frozen=True)
class Held:
    """The texts of one prompt: how many, how many different ones of those listed; of some of them, the mean
    log p of a token to the model itself, and how far it is off their score where they have one.
    """

    count: int
    different: int
    own: list[float]
    off: list[float]


def held(models: Models, way: str, number: int, prompt: str, **given: Any) -> Held:
    """What one way holds for prompt `number`, from which the texts are drawn at random."""
    count, texts = candidates_of(models, way, prompt, given)
    ids = models["target"].encode(prompt)
    some = random.Random(number).sample(texts, min(DRAWN, len(texts)))
    true = [own_logprob(models, ids, text) for text, _ in some]
    own = [logprob / len(text) for logprob, (text, _) in zip(true, some, strict=True)]
    scored = [(logprob, *one) for logprob, one in zip(true, some, strict=True) if one[1] is not None]
    off = [abs(score - logprob) / len(text) for logprob, text, score in scored]
    return Held(count, len({text for text, _ in texts}), own, off)


def mean(values: list[float]) -> float | None:
    """The mean; None of nothing."""
    return sum(values) / len(values) if values else None


def settings(models: Models) -> list[Setting]:
    """Every kind of lattice, beams and samples."""
    lattices = [{"expand": how, "merge": merge} for how, merge in product(FRONTIERS, ("zip", "never"))]
    ways = [*(("lattice", given) for given in lattices), ("beam", {}), ("nucleus samples", {})]
    asked = list(enumerate(prompts("stories", PROMPTS)))
    return [Setting((titled(*way),), *way, asked) for way in ways]


def measures(texts: list[Held], _: list[Held]) -> Row:
    """How many texts, and how likely they are."""
    return {
        COUNT: sum(one.count for one in texts) / len(texts),
        "different, of those listed": sum(one.different for one in texts) / len(texts),
        "log p per token": mean([value for one in texts for value in one.own]),
        "score is off by": mean([value for one in texts for value in one.off]),
    }


def widest(rows: list[Row]) -> Row:
    """The way that holds most texts."""
    return highest(rows, COUNT)


def says(rows: list[Row]) -> list[str]:
    """The fullest lattice against beams and samples."""
    most, (beam, nucleus) = widest(rows), rows[-2:]
    return [
        f"For {BEAMS * TOKENS} forwards per prompt, “{most['way']}” holds {most[COUNT]:,.0f} paths, "
        f"beam search {beam[COUNT]:,.0f} texts and sampling {nucleus[COUNT]:,.0f}.",
        f"The model's own log-probability of a token is {most['log p per token']:.2f} nats in texts drawn "
        f"from it, {beam['log p per token']:.2f} in beams, {nucleus['log p per token']:.2f} in samples.",
        f"The score of a merged path is {most['score is off by']:.3f} nats per token off its own "
        "log-probability.",
    ]


SWEEP = Sweep(
    names=("way",),
    settings=settings,
    decode=held,
    measures=measures,
    says=says,
    differences=(
        Difference(
            "log10 of the texts per prompt, lattice against beams",
            lambda texts: math.log10(texts[0].count),
            lambda rows: (widest(rows), rows[-2]),
        ),
    ),
    sampled={"prompts": PROMPTS},
)


def finding(answer: dict) -> str:
    """The fullest lattice against beams and samples."""
    rows = rows_of(answer)
    lattice = widest(rows[:-2])
    beams, samples = (row[COUNT] for row in rows[-2:])
    return (
        f"For the price of {beams:,.0f} beams or {samples:,.0f} samples a lattice holds "
        f"{lattice[COUNT]:,.0f} texts per prompt."
    )
