"""Repeatable experiments: each asks one question of the models and answers with a table and, where it helps,
a curve. `python -m explorer experiment NAME` runs one; the answers of the shipped models are in
assets/experiments and on the page.

A file of this folder, or of one of its `FOLDERS`, is an experiment: its docstring is the title and the
question, `PAPERS` are the studies that it repeats, and `finding(answer)` says the main thing in one sentence
with the numbers of the answer. Where the same prompts or problems are decoded under several settings, or
several models are asked the same, a `SWEEP` (sweep.py) declares what is set, what is measured and what was
sampled. Otherwise `run(models)` gives a `Result`, its loops go through `progress.each`, and `STANDS` declares
the basis of the finding: what was sampled, and how often something was trained. Intervals of differences are
those that the run measured; where they come from the table, a function `stands(answer)` takes the place of
`STANDS`. An experiment that reads stories declares `READS_CORPUS = True` and has `run(models, corpus)`; one
that reads the schemas of JSONSchemaBench declares `READS_SCHEMAS = True` and has `run(models, folder)`. If
its rows do not depend on each other, it can have `run(models, known)`, which keeps the rows of an earlier
answer and adds those that the answer lacks. The decodings of a sweep, and those that go through `over` of
spread.py, can run on several machines. `groups.py` says where the page shows an experiment.
"""

import argparse
import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from decoders import files
from decoders.packages import assets
from decoders.refusal import Refusal
from explorer.experiments import basis
from explorer.experiments.basis import Basis, Compared
from explorer.experiments.pictures import Chart, Line, Picture  # noqa: F401 (Line: for the experiments)
from explorer.shipped import check_corpus

if TYPE_CHECKING:
    from decoders.models.loaded_model import LoadedModel

FOLDER = assets() / "experiments"
FOLDERS = ("sweeps", "without_decoding", "small_trainings")  # of experiments, beside those in this folder
Models = dict[str, "LoadedModel"]
Cell = str | int | float | None


@dataclass(frozen=True)
class DrawnMessage:
    """A message between the parts of a run, sent `seconds` after its start. `call`: the number, counted from
    1, of the stored call that it requests or answers.
    """

    sender: str
    receiver: str
    says: str
    seconds: float
    call: int | None = None


@dataclass(frozen=True)
class Result:
    """The result of an experiment. `says`: sentences of conclusions, with measured numbers; `messages`: the
    messages of one run of communicating parts, if there is one; `calls`: the decodings in it, each as a trace
    file in base64, as the page opens them; `pictures`: more curves, and what curves cannot show; `compared`:
    differences whose intervals need what the table does not hold, for `stands`.
    """

    columns: list[str]
    rows: list[list[Cell]]
    says: list[str]
    chart: Chart | None = None
    messages: list[DrawnMessage] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)


@dataclass(frozen=True)
class Experiment:
    """A question, the studies that it comes from, and the function that answers it; `sweep`: its declaration,
    if it is one.
    """

    name: str
    title: str
    asks: str
    run: Callable[..., Result]
    finding: Callable[[dict], str]
    stands: Callable[[dict], Basis]
    papers: tuple[str, ...] = field(default=())
    reads_corpus: bool = False
    reads_schemas: bool = False
    spreads: bool = False
    adds: bool = False
    sweep: Any = None


def modules() -> Iterator[tuple[str, str]]:
    """(package, name) of each module in which an experiment may be."""
    for folder in ("", *FOLDERS):
        package = ".".join(filter(None, (__name__, folder)))
        found = pkgutil.iter_modules([str(Path(__path__[0]) / folder)])
        yield from ((package, one.name) for one in found if not one.ispkg)


@cache
def experiments() -> dict[str, Experiment]:
    """Name -> experiment, in the order of their names."""
    result = {}
    for folder, module in sorted(modules(), key=lambda place: place[1]):
        one = importlib.import_module(f"{folder}.{module}")
        sweep = getattr(one, "SWEEP", None)
        run = getattr(one, "run", None) or (sweep and sweep.run)
        if run is None:
            continue  # a helper of several experiments
        title, _, asks = one.__doc__.strip().partition("\n\n")
        name = module.replace("_", "-")
        result[name] = Experiment(
            name,
            title.rstrip("."),
            " ".join(asks.split()),
            run,
            one.finding,
            stands_of(one),
            one.PAPERS,
            reads_corpus=getattr(one, "READS_CORPUS", False),
            reads_schemas=getattr(one, "READS_SCHEMAS", False),
            spreads=not sweep.one_process if sweep else hasattr(one, "over"),
            adds="known" in inspect.signature(run).parameters,
            sweep=sweep,
        )
    return result


def stands_of(module: ModuleType) -> Callable[[dict], Basis]:
    """The function that says on what a finding stands: that of the module, or one that adds what was measured
    to what it declares.
    """
    if hasattr(module, "stands"):
        return module.stands
    declared = module.STANDS if hasattr(module, "STANDS") else Basis(module.SWEEP.sampled)
    return partial(basis.measured, declared)


def find(name: str) -> Experiment:
    """The experiment called `name`. Refusal with one sentence if there is none."""
    known = experiments()
    if name.replace("_", "-") not in known:
        raise Refusal(f"there is no experiment {name!r}; choose one of: {', '.join(known)}.")
    return known[name.replace("_", "-")]


def answered(
    experiment: Experiment,
    models: Models,
    corpus: Path | None = None,
    known: list[list[Cell]] | None = None,
    schemas: Path | None = None,
) -> dict:
    """Runs an experiment and returns its answer: the result with name, question, main finding, and the models
    that were asked. Raises Refusal with one sentence if it reads stories or schemas and no folder of them
    is given. known: rows of an earlier answer, which are not computed again.
    """
    fields = {"name": experiment.name, "title": experiment.title, "asks": experiment.asks}
    if experiment.reads_corpus:
        if corpus is None:
            raise Refusal(f"{experiment.name} reads stories; name their folder with --corpus FOLDER.")
        check_corpus(corpus)
        fields["corpus"] = True
    if experiment.reads_schemas:
        if schemas is None:
            raise Refusal(
                f"{experiment.name} reads the schemas of JSONSchemaBench; name a folder with a copy of its "
                "repository with --schemas FOLDER."
            )
        fields["schemas"] = True
    given = (corpus,) if experiment.reads_corpus else (schemas,) if experiment.reads_schemas else ()
    result = experiment.run(models, *given, *((known,) if known else ()))
    fields["models"] = {role: model.name for role, model in models.items()}
    answer = fields | json.loads(json.dumps(asdict(result)))  # as it is stored
    return concluded(experiment, answer)


def concluded(experiment: Experiment, answer: dict) -> dict:
    """An answer with its main finding and what that stands on, both made from its table; the measured
    differences of an answer that is concluded already are kept.
    """
    measured = answer.get("compared", answer.get("stands", {}).get("compared", []))
    answer = {name: value for name, value in answer.items() if name not in ("compared", "stands", "finding")}
    stands = asdict(experiment.stands(answer | {"compared": measured}))
    finding = basis.worded(experiment.finding(answer), stands)
    return answer | {"stands": stands, "finding": finding}


def stored() -> list[dict]:
    """The stored answers of the shipped models, in the order of their names."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]


def find_stored(name: str) -> dict:
    """The shipped models' stored answer to one experiment. Raises KeyError if there is none."""
    return {answer["name"]: answer for answer in stored()}[name]


def known_rows(experiment: Experiment, model: str, draft: str) -> list[list[Cell]]:
    """The rows of the stored answer. Refusal with one sentence if the experiment cannot be continued, or
    if other models were asked.
    """
    if not experiment.adds:
        known = ", ".join(name for name, one in experiments().items() if one.adds)
        raise Refusal(f"{experiment.name} cannot be continued row by row; --add works for {known}.")
    try:
        answer = find_stored(experiment.name)
    except KeyError:
        return []
    asked = answer["models"]
    if asked != {"target": model, "draft": draft}:
        raise Refusal(f"{asked['target']} and {asked['draft']} gave the stored rows; leave out --add.")
    return answer["rows"]


def number(value: Cell) -> str:
    """A cell as text: three decimals, a dash for None."""
    if value is None:
        return "—"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def table(answer: dict) -> str:
    """The answer as text: question, table, sentences."""
    rows = [answer["columns"], *([number(cell) for cell in row] for row in answer["rows"])]
    wide = [max(len(row[at]) for row in rows) for at in range(len(answer["columns"]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in rows]
    ends = [answer["finding"], basis.says(answer["stands"]), *answer["says"]]
    return "\n".join([answer["title"], answer["asks"], "", *lines, "", *ends])


def command(options: argparse.Namespace) -> None:
    """Lists the experiments, or runs one and prints it as text or JSON. With `--store` the answer is stored
    for the page; with `--ray` the decodings run in the workers of a Ray cluster.
    """
    from explorer.experiments import spread
    from explorer.experiments.progress_line import shown
    from explorer.runs.load_pair import load_models
    from explorer.runs.model_pool import share_cores

    if options.name is None:
        for experiment in experiments().values():
            print(f"{experiment.name:24} {experiment.title}")
        return
    experiment = find(options.name)
    if options.ray is not None and not experiment.spreads:
        known = ", ".join(name for name, one in experiments().items() if one.spreads)
        raise Refusal(f"{experiment.name} runs in one process; --ray spreads {known}.")
    known = known_rows(experiment, options.model, options.draft) if options.add else None
    where = nullcontext()
    if options.ray is not None:
        where = spread.cluster(options.ray, options.model, options.draft, options.run_code)
    with where:
        models = load_models(options.model, options.draft, ("target", "draft"), "auto")
        if experiment.spreads:
            share_cores(models)  # the same number of threads here and in a worker gives the same numbers
        with shown(experiment.name):
            answer = answered(experiment, models, options.corpus, known, options.schemas)
    if options.store:
        FOLDER.mkdir(exist_ok=True)
        files.write(FOLDER / f"{experiment.name}.json", json.dumps(answer, indent=1) + "\n")
    print(json.dumps(answer) if options.json else table(answer))
