"""Should code and types be decoded together?

Small typed functions of a record are compiled to a stack machine, which keeps neither names nor types, and a
small model writes them back: a definition of the record and a function that reads its fields (Idioms, 2025,
in miniature; there it is C). One model learns, from the same programs and equally long, to write both in one
text, the types first or the code first, and each of them alone. apart: the definition and the function are
decoded one after the other, each from the machine's code alone. Greedy. checks: the definition fits the
function, whose types are right; runs: it gives what the machine gives, for records of the defined types, in
the sandbox; works: both. own record: it is the one that was compiled; several have fields of the same types.
"""

import random
from collections.abc import Callable
from statistics import fmean

import torch
from transformers import LlamaForCausalLM

from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.models.small import fit
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.models.stack_machine import (
    Program,
    checks,
    executed,
    fields_of,
    make_program,
    python_of,
    records,
)
from explorer.experiments.pictures import Bars
from explorer.experiments.reading import percent, rows_with
from explorer.tasks import sandbox

PAPERS = ("idioms",)
PROGRAMS, HELD_OUT, INPUTS = 12_000, 150, 5  # of HELD_OUT, those whose machine code was read are left out
MACHINE, ANSWER = 16, 40  # words of the machine's code and of the longest answer
WIDTH, LAYERS, HEADS = 64, 3, 4
STEPS, BATCH, RATE, SEEDS = 1200, 32, 4e-3, 3
PAD, END = "_", "."
TYPES_FIRST, CODE_FIRST, TYPES, CODE = "<types, code>", "<code, types>", "<types>", "<code>"
ORDERS: dict[str, Callable[[Program], list[str]]] = {
    TYPES_FIRST: lambda one: [*one.types, *one.code],
    CODE_FIRST: lambda one: [*one.code, *one.types],
    TYPES: lambda one: one.types,
    CODE: lambda one: one.code,
}
TOGETHER, BACKWARDS, APART = "together, types first", "together, code first", "apart"
MEASURES = ["works", "checks", "runs", "own record"]
COLUMNS = ["decoded", "seed", "programs", *MEASURES]


def texts(programs: list[Program]) -> list[list[str]]:
    """The words of every program in every order, after the machine's code, which is padded."""
    return [
        [order, *(one.machine + [PAD] * MACHINE)[:MACHINE], *answer(one), END]
        for one in programs
        for order, answer in ORDERS.items()
    ]


def trained(rows: torch.Tensor, vocabulary: int, seed: int) -> LlamaForCausalLM:
    """A model of all orders; the loss is that of the answers. rows [R, T], 0 for padding."""
    model = small_llama(vocabulary, WIDTH, LAYERS, HEADS, seed)

    def loss(some: torch.Tensor) -> torch.Tensor:
        logits = model(some).logits[:, MACHINE:-1]
        right = some[:, MACHINE + 1 :]
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), right.flatten(), ignore_index=0)

    fit(model.parameters(), loss, rows, STEPS, BATCH, RATE, seed)
    return model.eval()


@torch.no_grad()
def answers(
    model: LlamaForCausalLM, programs: list[Program], order: str, words: list[str]
) -> list[list[str]]:
    """The greedy answer for each program in an order."""
    number = {word: at for at, word in enumerate(words)}
    asked = [[order, *(one.machine + [PAD] * MACHINE)[:MACHINE]] for one in programs]
    rows = torch.tensor([[number[word] for word in row] for row in asked])
    for _ in range(ANSWER):
        rows = torch.cat([rows, model(rows).logits[:, -1:].argmax(-1)], 1)
        if (rows[:, MACHINE + 1 :] == number[END]).any(1).all():
            break
    made = [[words[at] for at in row] for row in rows[:, MACHINE + 1 :].tolist()]
    return [row[: row.index(END)] if END in row else row for row in made]


def parts(answer: list[str]) -> tuple[list[str], list[str]]:
    """(types, code) of an answer with both, in either order."""
    starts = sorted(answer.index(word) for word in ("class", "def") if word in answer)
    if len(starts) < 2:
        return answer, []
    first, second = answer[: starts[1]], answer[starts[1] :]
    return (first, second) if first[0] == "class" else (second, first)


def ran(programs: list[Program], written: list[tuple[list[str], list[str]]]) -> list[bool]:
    """Which written programs give what the machine gives, all in one call of the sandbox."""
    source, calls, wanted = ["def f(at, names, values):", "    p = dict(zip(names, values))"], [], []
    for at, (one, (types, code)) in enumerate(zip(programs, written, strict=True)):
        fields, own = fields_of(types), fields_of(one.types)
        text = python_of(code)
        if text is None or fields is None or list(fields.values()) != list(own.values()):
            continue  # it asks for records that the machine's code does not fit
        source += [f"    if at == {at}:", "        try:", f"            return {text}"]
        source += ["        except Exception:", "            return None"]
        for values in records(random.Random(at), list(own.values()), INPUTS):
            calls.append((at, list(fields), values))
            wanted.append((at, repr(executed(one.machine, values))))
    values = sandbox.call("\n".join(source), "f", calls).values if calls else []
    right = {at for at, _ in wanted}
    for at, (place, want) in enumerate(wanted):
        if at >= len(values) or values[at] != want:
            right.discard(place)
    return [at in right for at in range(len(programs))]


def of_seed(train: list[Program], held: list[Program], seed: int) -> list[list[Cell]]:
    """A row for each way to decode."""
    cut = texts(train)
    words = [PAD, *sorted({word for text in [*cut, *texts(held)] for word in text} - {PAD})]
    number = {word: at for at, word in enumerate(words)}
    longest = max(map(len, cut))
    ids = [[number[word] for word in text] + [0] * (longest - len(text)) for text in cut]
    model = trained(torch.tensor(ids), len(words), seed)
    made = {order: answers(model, held, order, words) for order in ORDERS}
    ways = {
        TOGETHER: [parts(answer) for answer in made[TYPES_FIRST]],
        BACKWARDS: [parts(answer) for answer in made[CODE_FIRST]],
        APART: list(zip(made[TYPES], made[CODE], strict=True)),
    }
    rows = []
    for name, written in ways.items():
        checked = [checks(*one) for one in written]
        runs = ran(held, written)
        works = fmean(a and b for a, b in zip(checked, runs, strict=True))
        own = fmean(types == one.types for (types, _), one in zip(written, held, strict=True))
        rows.append([name, seed, len(held), works, fmean(checked), fmean(runs), own])
    return rows


def run(models: Models) -> Result:
    """A row for each way to decode and seed."""
    rng = random.Random("decompiled programs")
    programs = [make_program(rng, MACHINE) for _ in range(PROGRAMS + HELD_OUT)]
    known = {" ".join(one.machine) for one in programs[:PROGRAMS]}
    held = [one for one in programs[PROGRAMS:] if " ".join(one.machine) not in known]
    seeds = progress.each(range(SEEDS))
    rows = [row for seed in seeds for row in of_seed(programs[:PROGRAMS], held, seed)]
    by_way = {name: [row for row in rows if row[0] == name] for name in (TOGETHER, BACKWARDS, APART)}
    rows = [row for some in by_way.values() for row in some]
    compared = [
        by_pairs(
            f"works, {one} against {other}",
            [a[3] - b[3] for a, b in zip(by_way[one], by_way[other], strict=True)],
        )
        for one, other in ((TOGETHER, APART), (TOGETHER, BACKWARDS))
    ]
    names = list(by_way)
    means = [[fmean(row[at] for row in by_way[name]) for at in range(3, 7)] for name in names]
    bars = Bars("Decompiled programs", "measure", "share of the programs", MEASURES, names, means)
    return Result(COLUMNS, rows, conclusions(by_way), compared=compared, pictures=[bars])


def conclusions(by_way: dict[str, list[list[Cell]]]) -> list[str]:
    """The conclusions, as sentences."""
    says = []
    for name, rows in by_way.items():
        works, checked, runs, own = (fmean(row[at] for row in rows) for at in range(3, 7))
        says.append(
            f"{name[0].upper()}{name[1:]}: {percent(works)} of {rows[0][2]} programs work; "
            f"{percent(checked)} check, {percent(runs)} run right, and {percent(own)} have the record that "
            "was compiled."
        )
    return says


def finding(answer: dict) -> str:
    """How many programs work, decoded together and apart."""
    shares = {
        name: [
            percent(fmean(row[column] for row in rows_with(answer, "decoded", name)))
            for column in MEASURES[:2]
        ]
        for name in (TOGETHER, BACKWARDS, APART)
    }
    return (
        f"When types and code are decoded together, {shares[TOGETHER][0]} (types first) or "
        f"{shares[BACKWARDS][0]} (code first) of decompiled programs work; decoded apart, {shares[APART][0]} "
        f"work, and types and code fit each other in {shares[APART][1]} instead of {shares[TOGETHER][1]}."
    )


def stands(answer: dict) -> Basis:
    """Programs that no model read, and seeds."""
    held = answer["rows"][0][2]
    return Basis({"held-out programs": held}, SEEDS, compared=as_measured(answer))
