"""All strategies by name. The page, the command line and the docs are made from their declarations alone.
A strategy's file is imported when it is asked for; `strategies` imports them all.
"""

import difflib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decoders import own_code, strategy_files
from decoders.refusal import Refusal
from decoders.strategy import Strategy, parsed_parameters, shortened
from decoders.strategy_files import FAMILIES

# The sentence that says what each badge promises; a strategy's badge is computed from its parts and
# parameters.
BADGES = {
    "equal to generate": "Token for token what transformers' generate gives",
    "deterministic": "The same tokens for any seed",
    "sampled": "Draws from the model's processed distribution",
    "as the server decodes": "Written by the server itself; nothing is drawn or chosen here",
    "contrasted": "Draws from the contrast of several views, not from the model alone",
    "lossless: equal to greedy": "The same tokens as greedy decoding, in fewer target forwards",
    "lossless: equal to stepwise": "The same tokens as masked diffusion step by step, in fewer forwards",
    "exact over messages": "Averaged over all messages, exactly the model's processed distribution",
    "exact in distribution": "Draws from exactly the target's processed distribution",
    "exact because drafts are deterministic": "Exact, since the drafted tokens are not drawn at random",
    "any order": "Draws each token given those filled before, and those of one forward independently",
    "relaxed": "May differ from the target's own distribution: this choice of parts is not exact",
}

_STRATEGIES: dict[str, Strategy] = {}


def strategy(**declaration: Any) -> Callable[[Callable], Callable]:
    """Decorator that registers the generator below it. Its docstring is the strategy's card: the first line
    is the summary, the rest says how it works, with formulas between backticks and steps as "1. ...".
    """

    def register(run: Callable) -> Callable:
        summary = (run.__doc__ or "").strip().splitlines()[0]
        made = Strategy(run=run, summary=summary, **declaration)
        known = _STRATEGIES.get(made.name)
        owner = known.run.__module__ if known else strategy_files.strategy_modules().get(made.name)
        if owner not in (None, run.__module__):
            raise Refusal(f"Two strategies are called {made.name}.")
        _STRATEGIES[made.name] = made
        own_code.declared_in(run)
        return run

    return register


def include(path: Path | str) -> list[str]:
    """Runs a user's Python file and returns the names of the strategies that it declares, which are
    registered beside those of the package.

    Raises Refusal with one sentence if the file cannot be run, declares no strategy, or uses a name that
    is taken.
    """
    path, before = Path(path), _STRATEGIES.keys() | strategy_files.strategy_modules()
    if not path.is_file():
        raise Refusal(f"There is no file {path}; name a Python file that declares a strategy.")
    name = f"own_strategies_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Refusal(f"{path} is not a Python file; its name must end in .py.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        for own in set(_STRATEGIES) - before:
            del _STRATEGIES[own]
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame.lineno for frame in frames if frame.filename == str(path.absolute())]
        line = getattr(error, "lineno", None) or (inside[-1] if inside else 1)
        raise Refusal(f"{path}, line {line}: {error or type(error).__name__}") from error
    if not (names := sorted(set(_STRATEGIES) - before)):
        raise Refusal(f"{path} declares no strategy; write @strategy(...) above a generator.")
    return names


def strategies() -> dict[str, Strategy]:
    """All strategies by name, in family order; imports the file of each."""
    for module in strategy_files.strategy_modules().values():
        importlib.import_module(module)
    order = list(FAMILIES)
    return dict(sorted(_STRATEGIES.items(), key=lambda item: (order.index(item[1].family), item[0])))


def declarations() -> list[dict]:
    """The declarations of all strategies, in family order; those of the package are read from their published
    form, so that no file is imported.
    """
    published = strategy_files.published_declarations()
    own = {name: one.declaration() for name, one in _STRATEGIES.items() if name not in published}
    order = list(FAMILIES)
    return sorted({**published, **own}.values(), key=lambda one: (order.index(one["family"]), one["name"]))


def get(name: str) -> Strategy:
    """The strategy called `name`. Raises Refusal with one sentence that suggests similar names."""
    if name not in _STRATEGIES:
        importlib.import_module(_module_of(name))
    return _STRATEGIES[name]


def check_given(name: str, given: dict[str, Any]) -> None:
    """Raises Refusal with one sentence if there is no such strategy, or one of these parameters is unknown
    or unusable. The file of one with a published declaration is not imported; whether values fit together is
    left to `Strategy.check`.
    """
    if name not in _STRATEGIES and _module_of(name):
        declared = strategy_files.read_parameters(name)
        if declared is not None:
            parsed_parameters(name, declared, given)
            return
    get(name).check(given)


def _module_of(name: str) -> str:
    """The module that declares a strategy. Raises Refusal with one sentence that suggests similar names."""
    modules = strategy_files.strategy_modules()
    if name not in modules:
        alike = difflib.get_close_matches(name[:80], _STRATEGIES.keys() | modules, n=5, cutoff=0.0)
        raise Refusal(
            f"There is no strategy {shortened(name)}; choose one of those listed, such as {', '.join(alike)}."
        )
    return modules[name]
