"""How the code hangs together, in numbers: `python -m tests.house` prints them as a table.

What lies between functions is hard to see in a diff: how many modules one command imports, how many files one
round of drafting enters, which names disagree, and where a text connects two parts. Each figure is a function
that reads the tree as it stands; `tests/test_house.py` keeps some of them from getting worse.
"""

import ast
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("decoders", "visualizers", "explorer", "decoding_explorer")
WIDTH = 110  # characters of a line
Syntax = TypeVar("Syntax", bound=ast.AST)


def files(package: str) -> list[Path]:
    """The Python files of a package."""
    return sorted((ROOT / package).rglob("*.py"))


@cache
def by_kind(package: str) -> dict[type, list[ast.AST]]:
    """Kind -> its syntax nodes in a package: each file is parsed and walked once."""
    found = defaultdict(list)
    for file in files(package):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            found[type(node)].append(node)
    return found


def nodes(kind: type[Syntax], *packages: str) -> Iterator[Syntax]:
    """Every syntax node of one kind in these packages."""
    for package in packages:
        yield from by_kind(package)[kind]


# ---- size


def lines_of_python() -> int:
    """Lines of Python outside tests."""
    all_files = [ROOT / "app.py", ROOT / "hatch_build.py", *chain.from_iterable(map(files, PACKAGES))]
    return sum(len(file.read_text("utf-8").splitlines()) for file in all_files)


def script_lines() -> list[str]:
    """The lines of our own JavaScript."""
    scripts = sorted((ROOT / "assets" / "web").rglob("*.js"))
    return [line for file in scripts for line in file.read_text("utf-8").splitlines()]


def lines_of_javascript() -> int:
    """Lines of our own JavaScript."""
    return len(script_lines())


def wide_lines_of_javascript() -> int:
    """Lines of it that are wider than Python's."""
    return sum(len(line) > WIDTH for line in script_lines())


# ---- what one errand enters


def modules_imported(strategy: str) -> int:
    """Our modules that `python -m explorer run --strategy NAME` has imported when it ends."""
    count = (
        "import sys\nfrom explorer.cli import main\nmain(sys.argv[1:])\n"
        f"print('modules', sum(name.partition('.')[0] in {PACKAGES} for name in sys.modules))"
    )
    command = ["run", "--strategy", strategy, "--prompt", "Once", "--max-new-tokens", "4", "--device", "cpu"]
    ran = subprocess.run(
        [sys.executable, "-c", count, *command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return int(re.search(r"^modules (\d+)$", ran.stdout, re.MULTILINE)[1])


@cache
def round_entered() -> tuple[CodeType, ...]:
    """The functions of ours that the third step of the strategy `speculative` calls, in order, on two tiny
    models: by then caches are filled and prompts read.
    """
    from decoders.lane import Lane, Limits
    from tests.helpers import tiny_models

    models = {"target": tiny_models.make("llama", 0), "draft": tiny_models.make("llama", 1)}
    prompt = tiny_models.tokenizer()("the cat sat on a mat; the cat")["input_ids"]
    lane = Lane("speculative", prompt, models, limits=Limits(32))
    lane.advance()
    lane.advance()
    entered: list[CodeType] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and any(frame.f_code.co_filename.startswith(folder) for folder in OURS):
            entered.append(frame.f_code)

    sys.setprofile(look)
    try:
        lane.advance()
    finally:
        sys.setprofile(None)
    return tuple(entered)


OURS = tuple(f"{ROOT / package}/" for package in PACKAGES)


def files_of_a_round() -> int:
    """Files that one speculative round enters."""
    return len({code.co_filename for code in round_entered()})


def functions_of_a_round() -> int:
    """Functions that it calls; comprehensions and lambdas count with the function that they stand in."""
    named = {(code.co_filename, code.co_qualname.partition(".<locals>.<")[0]) for code in round_entered()}
    return len(named)


def changes_of_file_in_a_round() -> int:
    """How often the next call is in another file than the last."""
    places = [code.co_filename for code in round_entered()]
    return sum(one != other for one, other in pairwise(places))


def checks_of_a_press() -> list[str]:
    """The functions that read or check the request, or its parameters, when the page's Run is pressed for one
    lane: pydantic's models, `validation.check`, `Strategy.check`.
    """
    import asyncio

    from explorer.page.import_gradio import import_gradio

    import_gradio()
    from pydantic import BaseModel

    from decoders.strategy import Strategy
    from explorer.page.layout import server_functions
    from explorer.page.sessions import validated
    from explorer.runs import validation
    from explorer.runs.lane_factory import lane_maker
    from explorer.runs.scheduler import Runs
    from tests.helpers.ready_loader import ready_loader

    loader = ready_loader()
    runs = Runs(lane_maker(loader))
    functions = {function.__name__: function for function in server_functions(runs, loader)}
    press = validated(runs, functions["explorer_start"])
    checks = {one.__code__ for one in (BaseModel.model_validate.__func__, validation.check, Strategy.check)}
    called: list[str] = []

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in checks:
            called.append(frame.f_code.co_qualname)

    lane = {"strategy": "greedy", "parameters": {}, "seed": 0}
    request = {"session": "s" * 16, "prompt": "Once", "max_new_tokens": 2, "lanes": [lane]}
    threading.setprofile(look)  # of the threads that are started from now on
    sys.setprofile(look)
    try:
        asyncio.run(press(request))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        runs.close()
    return called


# ---- names


def disagreeing_views() -> list[str]:
    """Views whose name, file, title and class are not one: `draft_rounds`, "Draft rounds", DraftRounds."""
    from visualizers.registry import names
    from visualizers.scene.view import VIEWS

    names()  # imports all views
    return [
        name
        for name, view in sorted(VIEWS.items())
        if (view.__module__.rpartition(".")[2], re.sub(r"\W+", "_", view.title.lower()), view.__name__)
        != (name, name, name.title().replace("_", ""))
    ]


def strategies_of_a_pair_alone() -> list[str]:
    """Strategies whose function only takes its pair and runs its rounds: `@speculative` would do that."""
    found = []
    for function in nodes(ast.FunctionDef, "decoders"):
        body = function.body[1:] if ast.get_docstring(function) else function.body
        match body:
            case [
                ast.Assign(value=ast.Call(args=[ast.Attribute(ast.Name("lane"), "parameters")])),
                ast.Expr(value=ast.YieldFrom(ast.Call(func=ast.Name("rounds")))),
            ] | [
                ast.Expr(value=ast.YieldFrom(ast.Call(ast.Name("rounds"), [_, ast.Starred(ast.Call())]))),
            ] if function.decorator_list:
                found.append(function.name)
    return found


# ---- texts that connect


# What is called with a score's name -> where the name stands among its arguments.
NAMING = dict.fromkeys(("Rank", "Measure", "Table", "Span", "take_best", "record_rank", "record_measure"), 1)
NAMING |= {"record_table": 1, "record_span": 0}


def free_score_names() -> set[str]:
    """The names of scores that are not of `ScoreName`, as they are written: those under which scores are
    recorded, and texts with which the name of a score is matched or compared where it is read.
    """
    found = set()
    for call in nodes(ast.Call, "decoders"):
        method = isinstance(call.func, ast.Attribute)
        called = call.func.attr if method else getattr(call.func, "id", "")
        place = NAMING.get(called, len(call.args))
        if place < len(call.args) and method == called.startswith("record_"):
            found.add(ast.unparse(call.args[place]))
    for case in nodes(ast.MatchClass, *PACKAGES):
        of = dict(zip(case.kwd_attrs, case.kwd_patterns, strict=True))
        if getattr(case.cls, "id", "") in NAMING and "name" in of:
            found.add(ast.unparse(of["name"]))
    for comparison in nodes(ast.Compare, "visualizers/views", "visualizers/graphs"):
        left, right = comparison.left, comparison.comparators[0]
        if isinstance(left, ast.Attribute) and left.attr == "name" and isinstance(right, ast.Constant):
            found.add(ast.unparse(right))
    return {name for name in found if not name.startswith("ScoreName.")}


def events_matched_by_text() -> int:
    """Places that tell an event's class by its name, in a `case` or a comparison."""
    from decoders.trace.events import EVENTS

    cases = [case.value for case in nodes(ast.MatchValue, *PACKAGES)]
    compared = [
        part
        for comparison in nodes(ast.Compare, *PACKAGES)
        if "__name__" in ast.unparse(comparison)
        for side in (comparison.left, *comparison.comparators)
        for part in ast.walk(side)
    ]
    return sum(isinstance(one, ast.Constant) and one.value in EVENTS for one in (*cases, *compared))


def attributes_with_defaults() -> int:
    """Calls of `getattr(x, name, default)` in decoders."""
    return sum(
        isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) == 3
        for call in nodes(ast.Call, "decoders")
    )


def arguments_without_type() -> int:
    """Arguments of functions that say no type, but `self` and `cls`."""
    given = [
        argument
        for kind in (ast.FunctionDef, ast.AsyncFunctionDef)
        for function in nodes(kind, *PACKAGES)
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    ]
    return sum(one.annotation is None and one.arg not in ("self", "cls") for one in given)


# What is printed -> its figure, in the order of the table; lists and sets are counted.
FIGURES: dict[str, Callable[[], int | list[str] | set[str]]] = {
    "lines of Python outside tests": lines_of_python,
    "lines of JavaScript": lines_of_javascript,
    f"lines of JavaScript wider than {WIDTH} characters": wide_lines_of_javascript,
    "our modules that `run --strategy speculative` imports": lambda: modules_imported("speculative"),
    "our modules that `run --strategy greedy` imports": lambda: modules_imported("greedy"),
    "one speculative round: files": files_of_a_round,
    "one speculative round: functions": functions_of_a_round,
    "one speculative round: changes of file": changes_of_file_in_a_round,
    "one press on Run: how often the request is checked": checks_of_a_press,
    "views whose name, file, title and class disagree": disagreeing_views,
    "strategies whose body only takes its pair and runs rounds": strategies_of_a_pair_alone,
    "free names of scores": free_score_names,
    "events matched by class name as text": events_matched_by_text,
    "getattr(x, name, default) in decoders": attributes_with_defaults,
    "arguments without a type": arguments_without_type,
}


def counted(figure: Callable[[], int | list[str] | set[str]]) -> int:
    """A figure as a number."""
    value = figure()
    return value if isinstance(value, int) else len(value)


def main() -> None:
    """Prints the table."""
    print("| what | now |\n|---|---|")
    for what, figure in FIGURES.items():
        print(f"| {what} | {counted(figure):,} |", flush=True)


if __name__ == "__main__":
    main()
