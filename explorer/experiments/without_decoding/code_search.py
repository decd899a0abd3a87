"""Do a decoder's states find the program that a comment describes?

Comments and programs of our own tasks become vectors: a causal model reads a text, and its last states are
averaged. The programs are one-line Python functions, and small Verilog modules in which all signals are
letters, so that names alone do not give a module away. Cosine similarity to a comment ranks all programs of a
collection. With the prompt, the study's instruction precedes the comment; it is read but not averaged (Are
Decoder-Only Large Language Models the Silver Bullet for Code Search?, 2024). MRR: the mean of 1 / rank of the
right program. For comparison: the words that both have in common, rare ones counting more, and the encoder of
an encoder-decoder that has read such modules. fine-tuned: one linear map for comments and one for programs,
trained contrastively on other modules, with several seeds; the study trains the models themselves.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import torch
from torch.nn.functional import cross_entropy, normalize

from decoders.models import loading
from decoders.models.loaded_model import LoadedModel
from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.basis import Basis, Compared, by_pairs
from explorer.experiments.models.small import fit
from explorer.experiments.pictures import Bars
from explorer.experiments.reading import minus, rows_of, two
from explorer.tasks.python_programs import TEMPLATES
from explorer.tasks.verilog import MODULES as NAMES
from explorer.tasks.verilog import SIGNALS, make_module, marked

PAPERS = ("are-decoder-only-large-language-models-the",)
PROMPT = "Given a code search query, retrieve relevant passages that answer the query: "
PYTHON, VERILOG = "Python", "Verilog"
MODULES, LEARNED = 200, 600  # modules that are searched, and others on which the maps are trained
DRAWS = 3  # collections of modules, and trainings of the maps
STEPS, BATCH, RATE, WIDTH, SHARPNESS = 400, 64, 3e-3, 64, 20.0
LETTERS = "abcdefghi"  # what signals are called: as many as a module has at most
NAME = re.compile(rf"\b({'|'.join((*NAMES, *SIGNALS))})\b")
ADAPTED, ENCODER = "llama-tiny-verilog", "tiny-codet5"
WORDS, STUDY = "words in common", "the study's"
COLUMNS = ["programs", "vectors from", "prompt", "searched", "MRR", "first", "MRR fine-tuned"]
Pair = tuple[str, str]  # comment, program
Vectors = Callable[[list[str], str], torch.Tensor]  # (texts, prompt) -> [N, d]


def load(name: str) -> LoadedModel:
    """A shipped model."""
    return loading.load(name)


def python_pairs() -> list[Pair]:
    """Every function of the task `python` once."""
    made = {}
    for says, parameters, body, _ in TEMPLATES:
        for k in range(2, 6):
            made[says.format(k=k)] = f"def f({parameters}):\n    return {body.format(k=k)}\n"
    return list(made.items())


def renamed(pair: Pair, rng: random.Random) -> Pair:
    """A comment and its module, whose signals are called by letters that are drawn for this module."""
    letters = iter(rng.sample(LETTERS, len(LETTERS)))
    names = dict.fromkeys(NAMES, "m")

    def letter(match: re.Match) -> str:
        if match[0] not in names:
            names[match[0]] = next(letters)
        return names[match[0]]

    return NAME.sub(letter, pair[0]), NAME.sub(letter, pair[1])


def modules(seed: str, count: int) -> list[Pair]:
    """This many different modules, each with its comment."""
    rng, made = random.Random(seed), {}
    while len(made) < count:
        comment, module = renamed(make_module(rng), rng)
        made[comment] = module
    return list(made.items())


def with_marks(vectors: Vectors) -> Vectors:
    """The same of programs with the marks with which the adapted model has read them."""

    def marking(texts: list[str], prompt: str) -> torch.Tensor:
        return vectors([text if text.startswith("//") else marked(text) for text in texts], prompt)

    return marking


def of_decoder(model: LoadedModel) -> Vectors:
    """Means of a causal model's last states over the tokens of a text, without those of the prompt."""

    @torch.inference_mode()
    def vectors(texts: list[str], prompt: str) -> torch.Tensor:
        before = model.cut(prompt) if prompt else []
        made = []
        for text in texts:
            ids = torch.tensor([[*before, *model.cut(text)]], device=model.model.device)
            states = model.model(input_ids=ids, output_hidden_states=True).hidden_states[-1]
            made.append(states[0, len(before) :].float().mean(0).cpu())
        return torch.stack(made)

    return vectors


def of_encoder(model: LoadedModel) -> Vectors:
    """Means of the states of an encoder, which reads every text as a source."""

    @torch.inference_mode()
    def vectors(texts: list[str], prompt: str) -> torch.Tensor:
        before, made = len(model.cut(prompt)) if prompt else 0, []
        for text in texts:
            ids = torch.tensor([model.cut(prompt + text)])
            states, _ = model.model.read(ids, torch.ones_like(ids, dtype=torch.bool))
            made.append(states[0, 1 + before :].mean(0))
        return torch.stack(made)

    return vectors


def of_words(comments: list[str], programs: list[str]) -> torch.Tensor:
    """Similarities [N, N] of bags of words, each word weighted by the logarithm of how rare it is."""
    bags = [[Counter(re.findall(r"\w+", text)) for text in texts] for texts in (comments, programs)]
    known = Counter(word for side in bags for bag in side for word in bag)
    place = {word: at for at, word in enumerate(known)}
    rare = torch.tensor([math.log(2 * len(comments) / known[word]) for word in place])

    def rows(side: list[Counter]) -> torch.Tensor:
        made = torch.zeros(len(side), len(place))
        for at, bag in enumerate(side):
            for word, times in bag.items():
                made[at, place[word]] = times
        return normalize(made * rare, dim=-1)

    return rows(bags[0]) @ rows(bags[1]).T


def reciprocal_ranks(similar: torch.Tensor) -> list[float]:
    """1 / rank of the right program, on the diagonal of similarities [N, N]; a tie counts against it."""
    return (1 / (similar >= similar.diagonal()[:, None]).sum(1)).tolist()


def cosines(comments: torch.Tensor, programs: torch.Tensor) -> torch.Tensor:
    """Cosine similarities [N, M]."""
    return normalize(comments, dim=-1) @ normalize(programs, dim=-1).T


def maps(comments: torch.Tensor, programs: torch.Tensor, seed: int) -> tuple[torch.nn.Linear, ...]:
    """Two linear maps under which each comment is closest to its own program among those of its batch."""
    torch.manual_seed(seed)
    both = tuple(torch.nn.Linear(comments.shape[1], WIDTH) for _ in range(2))

    def loss(some: torch.Tensor) -> torch.Tensor:
        similar = SHARPNESS * cosines(both[0](comments[some]), both[1](programs[some]))
        right = torch.arange(len(some))
        return (cross_entropy(similar, right) + cross_entropy(similar.T, right)) / 2

    numbers = torch.arange(len(comments))
    fit([p for one in both for p in one.parameters()], loss, numbers, STEPS, BATCH, RATE, seed)
    return both


@dataclass(frozen=True)
class Found:
    """Reciprocal ranks of one way to search, query by query, as the vectors are and after fine-tuning."""

    plain: list[float]
    tuned: list[float]


def columns_of(pairs: list[Pair]) -> tuple[list[str], list[str]]:
    """(comments, programs)."""
    return [comment for comment, _ in pairs], [program for _, program in pairs]


def searched(vectors: Vectors, draws: list[list[Pair]], learned: list[Pair], prompt: str) -> Found:
    """The ranks in each collection; where there are pairs to learn from, also with maps trained on them."""

    def read(pairs: list[Pair]) -> list[torch.Tensor]:
        return [vectors(texts, given) for texts, given in zip(columns_of(pairs), (prompt, ""), strict=True)]

    plain, tuned = [], []
    known = read(learned) if learned else []
    for seed, pairs in enumerate(progress.each(draws)):
        sides = read(pairs)
        plain += reciprocal_ranks(cosines(*sides))
        if known:
            scale = torch.cat(known).std(0) + 1e-6
            both = maps(*(side / scale for side in known), seed)
            with torch.no_grad():
                tuned += reciprocal_ranks(
                    cosines(*(one(side / scale) for one, side in zip(both, sides, strict=True)))
                )
    return Found(plain, tuned)


def run(models: Models) -> Result:
    """A row for each collection, source of vectors and prompt."""
    drawn = [modules(f"search {seed}", MODULES) for seed in range(DRAWS)]
    searches = {comment for pairs in drawn for comment, _ in pairs}
    learned = [pair for pair in modules("learn", LEARNED) if pair[0] not in searches]
    collections = {PYTHON: ([python_pairs()], []), VERILOG: (drawn, learned)}
    decoders = {one.name: of_decoder(one) for one in (models["target"], models["draft"])}
    by_kind = {
        PYTHON: decoders,
        VERILOG: {
            **decoders,
            ADAPTED: with_marks(of_decoder(load(ADAPTED))),
            ENCODER: of_encoder(load(ENCODER)),
        },
    }
    table: list[list[Cell]] = []
    found: dict[tuple[str, str, str], Found] = {}
    for kind, ways in progress.each(by_kind.items(), weight=lambda item: 1 if item[0] == PYTHON else 12):
        draws, others = collections[kind]
        words = [rank for pairs in draws for rank in reciprocal_ranks(of_words(*columns_of(pairs)))]
        table.append([kind, WORDS, None, len(draws[0]), *measured(Found(words, []))])
        for name, prompt in progress.each([(name, prompt) for name in ways for prompt in ("", PROMPT)]):
            one = found[kind, name, prompt] = searched(ways[name], draws, others, prompt)
            table.append([kind, name, STUDY if prompt else "none", len(draws[0]), *measured(one)])
    compared = differences(found, models["target"].name)
    return Result(COLUMNS, table, conclusions(table), compared=compared, pictures=[picture(table)])


def differences(found: dict[tuple[str, str, str], Found], target: str) -> list[Compared]:
    """What the prompt and the maps change on modules, and the target against the encoder, by query."""
    verilog, encoder = found[VERILOG, target, ""], found[VERILOG, ENCODER, ""]
    sides = {
        "MRR with the prompt against without": (found[VERILOG, target, PROMPT].plain, verilog.plain),
        "fine-tuned against not": (verilog.tuned, verilog.plain),
        "target against encoder, both fine-tuned": (verilog.tuned, encoder.tuned),
    }
    return [
        by_pairs(what, [a - b for a, b in zip(one, other, strict=True)])
        for what, (one, other) in sides.items()
    ]


def measured(found: Found) -> list[Cell]:
    """The last three cells of a row."""
    first = fmean(rank == 1 for rank in found.plain)
    return [fmean(found.plain), first, fmean(found.tuned) if found.tuned else None]


def picture(table: list[list[Cell]]) -> Bars:
    """MRR on the modules, with one bar before and one after fine-tuning."""
    rows = [row for row in table if row[0] == VERILOG and row[2] == "none"]
    names = ["as they are", "fine-tuned"]
    values = [[round(row[at], 3) for row in rows] for at in (4, 6)]
    return Bars(
        "Modules found by their comments", "vectors from", "MRR", [row[1] for row in rows], names, values
    )


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    says = []
    for kind in (PYTHON, VERILOG):
        rows = [row for row in table if row[0] == kind]
        changes = [
            f"{plain[1]} {100 * (prompted[4] - plain[4]):+.1f}"
            for plain, prompted in zip(rows[1::2], rows[2::2], strict=True)
        ]
        listed = ", ".join(f"{row[1]} {row[4]:.2f}" for row in rows if row[2] != STUDY)
        says += [
            f"{kind}, MRR among {rows[0][3]} programs: {listed}.",
            f"{kind}, what the prompt changes, in points of MRR: {', '.join(changes)}.",
        ]
    tuned = [row for row in table if row[0] == VERILOG and row[2] == "none"]
    listed = ", ".join(f"{row[1]} {row[6]:.2f}" for row in tuned)
    return [minus(said) for said in (*says, f"{VERILOG}, after fine-tuning without the prompt: {listed}.")]


def finding(answer: dict) -> str:
    """The target's states as they are, with the prompt and after fine-tuning, and the encoder's."""
    rows = [row for row in rows_of(answer) if row["programs"] == VERILOG]
    words, own, prompted = rows[:3]
    encoder = next(row for row in rows if row["vectors from"] == ENCODER)
    return (
        f"The target's states find the module of a comment among {own['searched']} with an MRR of "
        f"{two(own['MRR'])} ({two(prompted['MRR'])} after the study's prompt), and words in common with one "
        f"of {two(words['MRR'])}; after fine-tuning, the states reach {two(own['MRR fine-tuned'])} and an "
        f"encoder's {two(encoder['MRR fine-tuned'])}."
    )


STANDS = Basis({"searched modules": DRAWS * MODULES}, trained=DRAWS)
