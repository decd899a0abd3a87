"""Does a stream have to be decoded all the time?

A stream of scenes: six facts about three people, told in a new order at every step. Usually a fact changes
that nobody asks about; now and then the person who is asked about changes place. The target reads each scene
with the question, and decodes an answer only when a vector has moved far enough, in cosine distance, since
the last answer; meanwhile that answer stands (decoding on demand, VL-JEPA 2025, whose decoder reads the
predicted vector alone). The vector is the mean of the target's states, its last state, or, as in the paper, a
prediction of the answer's own vector, by a small network that is trained here on other scenes. For
comparison: every k-th step. right: how often the standing answer is the right one, over all steps. calls: the
share of steps at which the target decodes. Distance 0 decodes at every step, infinity once in a stream.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, text_of
from explorer.experiments.basis import Basis, Compared, by_pairs
from explorer.experiments.models.small import fit
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import percent, rows_of
from explorer.tasks.facts import COLOURS, NAMES, PLACES, THINGS

PAPERS = ("vl-jepa",)
STREAMS, STEPS, SEEDS = 12, 40, 3  # streams for each training of the network, and scenes of each
MOVES, OTHERS = 0.15, 0.7  # probability that the answer changes at a step, or else another fact
SCENES, TRAINING, BATCH, RATE, INNER, SHARPNESS = 1500, 400, 64, 2e-3, 64, 10.0
TOKENS = 4  # of an answer
EVERY = (1, 2, 3, 4, 6, 10, STEPS)
SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 1 / 3, 0.5, 0.75)  # of steps, for which a distance is found
EQUAL = 3  # every third step, with which vectors are compared at no more calls
MEAN, LAST, PREDICTED, UNIFORM = "mean of the states", "last state", "predicted answer", "every k-th step"
COLUMNS = ["decodes when", "distance, or k", "calls", "right", "of the right at every step"]


@dataclass(frozen=True)
class Scene:
    """A prompt, and the right answer."""

    prompt: str
    answer: str


def scene_of(facts: dict[str, tuple[str, str, str]], asked: str, rng: random.Random) -> Scene:
    """A scene of people's (colour, thing, place), in random order."""
    lines = [f"{name} has a {colour} {thing}." for name, (colour, thing, _) in facts.items()]
    lines += [f"{name} is in {place}." for name, (_, _, place) in facts.items()]
    rng.shuffle(lines)
    return Scene(f"{' '.join(lines)}\nQuestion: Where is {asked}?\nAnswer:", facts[asked][2])


def other(word: str, words: tuple[str, ...], rng: random.Random) -> str:
    """Another one of some words."""
    return rng.choice([one for one in words if one != word])


def stream(rng: random.Random, steps: int) -> Iterator[Scene]:
    """Scenes that follow each other."""
    names = rng.sample(NAMES, 3)
    facts = {name: (rng.choice(COLOURS), rng.choice(THINGS), rng.choice(PLACES)) for name in names}
    asked = names[0]
    for at in range(steps):
        if at and rng.random() < MOVES:
            colour, thing, place = facts[asked]
            facts[asked] = colour, thing, other(place, PLACES, rng)
        elif at and rng.random() < OTHERS:
            name, which = rng.choice(names), rng.randrange(3)
            if name == asked and which == 2:
                which = 0
            changed = list(facts[name])
            changed[which] = other(changed[which], (COLOURS, THINGS, PLACES)[which], rng)
            facts[name] = tuple(changed)
        yield scene_of(facts, asked, rng)


@torch.inference_mode()
def read(models: Models, prompts: list[str]) -> dict[str, torch.Tensor]:
    """The mean of the target's states, and its last state [N, d] each, after prompts."""
    target, made = models["target"], []
    for prompt in progress.each(prompts):
        ids = torch.tensor([target.encode(prompt)], device=target.model.device)
        states = target.model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0].float().cpu()
        made.append((states.mean(0), states[-1]))
    means, lasts = zip(*made, strict=True)
    return {MEAN: torch.stack(means), LAST: torch.stack(lasts)}


def predictor(states: torch.Tensor, right: torch.Tensor, answers: torch.Tensor, seed: int) -> nn.Module:
    """A network from states [N, 2 d] to the vectors of answers [A, d], trained so that the right one is
    closer than all others.
    """
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.LayerNorm(states.shape[1]),
        nn.Linear(states.shape[1], INNER),
        nn.GELU(),
        nn.Linear(INNER, answers.shape[1]),
    )

    def loss(some: torch.Tensor) -> torch.Tensor:
        return cross_entropy(SHARPNESS * normalize(network(states[some]), dim=-1) @ answers.T, right[some])

    fit(network.parameters(), loss, torch.arange(len(states)), TRAINING, BATCH, RATE, seed)
    return network.eval()


@dataclass(frozen=True)
class Stream:
    """A stream as it was seen: the right answers, those that decoding at every step gives, and for each kind
    of vector the cosine similarities [T, T] of all steps.
    """

    right: list[str]
    said: list[str]
    alike: dict[str, torch.Tensor]


def on_demand(alike: torch.Tensor, distance: float) -> list[int]:
    """The steps at which is decoded: the first, and each whose vector is at least this far from that of the
    last one; alike [T, T].
    """
    steps = [0]
    for at in range(1, len(alike)):
        if 1 - float(alike[steps[-1], at]) >= distance:
            steps.append(at)
    return steps


def standing(seen: Stream, steps: list[int]) -> float:
    """The share of steps at which the answer that was decoded last is right."""
    stands, hits = "", 0
    for at, right in enumerate(seen.right):
        stands = seen.said[at] if at in steps else stands
        hits += stands == right
    return hits / len(seen.right)


def distance_for(streams: list[Stream], kind: str, share: float) -> float:
    """A distance at which no more than this share of all steps is decoded, found by halving."""
    low, high = 0.0, 2.0
    for _ in range(20):
        middle = (low + high) / 2
        calls = sum(len(on_demand(one.alike[kind], middle)) for one in streams)
        if calls > share * sum(len(one.right) for one in streams):
            low = middle
        else:
            high = middle
    return high


def answer_vectors(models: Models) -> torch.Tensor:
    """Unit vectors [A, d] of the possible answers: their mean states, less what all have in common."""
    means = read(models, [f" {place}" for place in PLACES])[MEAN]
    return normalize(means - means.mean(0), dim=-1)


def seen_streams(models: Models, network: nn.Module, seed: int) -> list[Stream]:
    """Streams that are decoded at every step, with their vectors."""
    rng = random.Random(f"decoding on demand {seed}")
    made = []
    for _ in progress.each(range(STREAMS)):
        scenes = list(stream(rng, STEPS))
        with progress.part(0.5):
            vectors = read(models, [scene.prompt for scene in scenes])
        traces = [decoded(models, "greedy", scene.prompt, TOKENS) for scene in progress.each(scenes)]
        said = [text_of(models, trace.output()).split("\n")[0].strip() for trace in traces]
        with torch.no_grad():
            vectors[PREDICTED] = network(torch.cat([vectors[MEAN], vectors[LAST]], 1))
        units = {kind: normalize(one, dim=-1) for kind, one in vectors.items()}
        alike = {kind: (one @ one.T).clamp(max=1.0) for kind, one in units.items()}
        made.append(Stream([scene.answer for scene in scenes], said, alike))
    return made


def run(models: Models) -> Result:
    """A row for each kind of vector and distance, and for each k."""
    rng = random.Random("scenes to learn from")
    scenes = [next(stream(rng, 1)) for _ in range(SCENES)]
    with progress.part(0.3):
        vectors = read(models, [scene.prompt for scene in scenes])
    with progress.part(0.05):
        answers = answer_vectors(models)
    states = torch.cat([vectors[MEAN], vectors[LAST]], 1)
    right = torch.tensor([PLACES.index(scene.answer) for scene in scenes])
    streams = []
    for seed in progress.each(range(SEEDS)):
        with progress.part(0.1):
            network = predictor(states, right, answers, seed)
        with progress.part(1.0):
            streams += seen_streams(models, network, seed)
    always = fmean(standing(one, list(range(STEPS))) for one in streams)

    def row(name: str, number: float, steps: list[list[int]]) -> list[Cell]:
        calls = sum(map(len, steps)) / (STEPS * len(streams))
        hits = fmean(standing(one, some) for one, some in zip(streams, steps, strict=True))
        return [name, number, calls, hits, hits / always if always else None]

    table = [row(UNIFORM, k, [list(range(0, STEPS, k))] * len(streams)) for k in EVERY]
    for kind in (MEAN, LAST, PREDICTED):
        for distance in (*(distance_for(streams, kind, share) for share in SHARES), 0.0):
            table.append(row(kind, distance, [on_demand(one.alike[kind], distance) for one in streams]))
    return Result(
        COLUMNS,
        table,
        conclusions(table),
        chart(table),
        pictures=[timeline(streams[0], distance_for(streams, PREDICTED, 1 / EQUAL))],
        compared=differences(streams),
    )


def differences(streams: list[Stream]) -> list[Compared]:
    """Each kind of vector against every third step, at no more calls, stream by stream."""
    uniform = [standing(one, list(range(0, STEPS, EQUAL))) for one in streams]
    compared = []
    for kind in (PREDICTED, LAST, MEAN):
        distance = distance_for(streams, kind, 1 / EQUAL)
        found = [standing(one, on_demand(one.alike[kind], distance)) for one in streams]
        gaps = [a - b for a, b in zip(found, uniform, strict=True)]
        compared.append(by_pairs(f"right with a third of the calls, {kind} against uniform", gaps))
    return compared


def timeline(seen: Stream, distance: float) -> TokenMap:
    """The steps of a stream at which the answer changes, and at which is decoded, on demand and evenly."""
    changes = [0, *(at for at in range(1, STEPS) if seen.right[at] != seen.right[at - 1])]
    rows = {
        "answer changes": changes,
        "predicted": on_demand(seen.alike[PREDICTED], distance),
        f"every {EQUAL} steps": list(range(0, STEPS, EQUAL)),
    }
    values = [[float(at in steps) for at in range(STEPS)] for steps in rows.values()]
    words = [f" {answer.removeprefix('the ')}" for answer in seen.right]
    return TokenMap("When a stream is decoded", "the steps at which this happens", words, list(rows), values)


def chart(table: list[list[Cell]]) -> Chart:
    """Right answers by calls, a line for each way to decide."""
    names = dict.fromkeys(row[0] for row in table)
    lines = [Line(name, sorted([row[2], row[3]] for row in table if row[0] == name)) for name in names]
    return Chart("Decoding on demand", "share of steps at which the target decodes", "right", lines)


def needed(table: list[list[Cell]], name: str, share: float = 0.95) -> float:
    """The fewest calls that keep this share of the right answers."""
    return min((row[2] for row in table if row[0] == name and row[3] >= share * table[0][3]), default=1.0)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    says = [f"Decoded at every step, {percent(table[0][3])} of the answers are right."]
    for name in dict.fromkeys(row[0] for row in table):
        calls = needed(table, name)
        says.append(
            f"{name[0].upper()}{name[1:]}: 95% of them are kept with decoding at {percent(calls)} of the "
            f"steps, {1 / calls:.1f} times fewer."
        )
    return says


def finding(answer: dict) -> str:
    """The calls that each way needs for nearly all right answers."""
    table = [list(row.values()) for row in rows_of(answer)]
    calls = {name: percent(needed(table, name)) for name in (PREDICTED, LAST, MEAN, UNIFORM)}
    return (
        f"To keep nineteen of twenty right answers of a stream takes {calls[PREDICTED]} of the decodings "
        f"when the predicted answer triggers them, {calls[LAST]} with the target's last state, {calls[MEAN]} "
        f"with the mean of its states, and {calls[UNIFORM]} at every k-th step."
    )


STANDS = Basis({"streams": STREAMS * SEEDS}, trained=SEEDS)
