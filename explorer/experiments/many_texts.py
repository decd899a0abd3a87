"""How many texts does one budget buy?

The same number of forwards goes to a lattice, with each of its three ways to expand, with and without
merging, to beam search, and to nucleus samples. How many different texts result, and how likely is a token of
a randomly chosen text to the model itself? A lattice reuses scores that were computed after another prefix,
so a path's score is not its own log-probability: how far are the two apart?
"""

import math
import random
from typing import Any

from decoders.lane import Lane, Limits
from decoders.search.beam.hypotheses import returned
from decoders.search.best_first.lattice import FRONTIERS, Graph
from decoders.trace.events import Propose, Verdict
from decoders.trace.trace import Trace
from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import own_logprob, prompts
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.reading import rows_of

PAPERS = ("massive-scale-decoding-for-text-generation-using",)
PROMPTS, TOKENS, BEAMS, DRAWN = 6, 16, 8, 8  # the budget: as many forwards as BEAMS texts of TOKENS tokens
MAX_PATHS = 200  # maximum paths of a lattice per end node from which texts are taken
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


def lane(models: Models, strategy: str, prompt: str, seed: int = 0, **parameters: Any) -> Trace:
    """The trace of one lane."""
    ids = models["target"].encode(prompt)
    return Lane(strategy, ids, models, parameters, seed, Limits(TOKENS)).run()


def candidates_of(models: Models, way: str, given: dict, prompt: str) -> tuple[int, Scored]:
    """(number of texts or paths that a way yields, texts with their scores)."""
    if way == "lattice":
        return lattice_texts(lane(models, "lattice", prompt, max_forwards=BEAMS * TOKENS, **given))
    if way == "beam":
        wanted = {"num_beams": BEAMS, "num_return_sequences": BEAMS, "length_penalty": 0.0}
        texts = [(tuple(text), score) for text, score in returned(lane(models, "beam", prompt, **wanted))]
        return len(texts), texts
    drawn = [lane(models, "sample", prompt, seed, top_p=0.9).output() for seed in range(BEAMS)]
    return len(drawn), [(tuple(text), None) for text in drawn]


def row(models: Models, way: str, given: dict) -> tuple[list[Cell], list[int]]:
    """The results of one way with this budget over all prompts, and how many texts each prompt has."""
    held, different = [], 0
    own, off = [], []
    for number, prompt in progress.each(enumerate(prompts("stories", PROMPTS))):
        count, texts = candidates_of(models, way, given, prompt)
        held.append(count)
        different += len({text for text, _ in texts})
        ids = models["target"].encode(prompt)
        for text, score in random.Random(number).sample(texts, min(DRAWN, len(texts))):
            true = own_logprob(models, ids, text)
            own.append(true / len(text))
            if score is not None:
                off.append(abs(score - true) / len(text))
    name = ", ".join([way, *(f"{key} {value}" for key, value in given.items())])
    mean = [sum(values) / len(values) if values else None for values in (own, off)]
    return [name, sum(held) / PROMPTS, different / PROMPTS, *mean], held


def run(models: Models) -> Result:
    """One row per way."""
    ways = [("lattice", {"expand": how, "merge": merge}) for how in FRONTIERS for merge in ("zip", "never")]
    ways += [("beam", {}), ("nucleus samples", {})]
    made = [row(models, way, given) for way, given in progress.each(ways)]
    rows, held = [cells for cells, _ in made], [texts for _, texts in made]
    widest, beam, nucleus = max(rows, key=lambda r: r[1]), rows[-2], rows[-1]
    ahead = [math.log10(a / b) for a, b in zip(held[rows.index(widest)], held[-2], strict=True)]
    compared = [by_pairs("log10 of the texts per prompt, lattice against beams", ahead)]
    says = [
        f"For {BEAMS * TOKENS} forwards per prompt, “{widest[0]}” holds {widest[1]:,.0f} paths, "
        f"beam search {beam[1]:,.0f} texts and sampling {nucleus[1]:,.0f}.",
        f"The model's own log-probability of a token is {widest[3]:.2f} nats in texts drawn from it, "
        f"{beam[3]:.2f} in beams, {nucleus[3]:.2f} in samples.",
        f"The score of a merged path is {widest[4]:.3f} nats per token off its own log-probability.",
    ]
    columns = ["way", "paths or texts", "different, of those listed", "log p per token", "score is off by"]
    says = [sentence.replace(" -", " −") for sentence in says]
    return Result(columns, rows, says, compared=compared)


def finding(answer: dict) -> str:
    """The fullest lattice against beams and samples."""
    rows = rows_of(answer)
    lattice = max(rows[:-2], key=lambda row: row["paths or texts"])
    beams, samples = (row["paths or texts"] for row in rows[-2:])
    return (
        f"For the price of {beams:,.0f} beams or {samples:,.0f} samples a lattice holds "
        f"{lattice['paths or texts']:,.0f} texts per prompt."
    )


def stands(answer: dict) -> Basis:
    """Prompts."""
    return Basis({"prompts": PROMPTS}, compared=as_measured(answer))
