"""The lanes with which the page opens where no run of its models is stored: two that these models can run.

Before the models are loaded, their files say what to expect; `that_run` asks the models themselves.
"""

from decoders.models.shared_tokens import same_tokens
from explorer.catalog import origins, recorded_runs

COUNT = 2


def lane(strategy: str) -> dict:
    """The settings of a lane: those of the stored run if it has this strategy."""
    stored = {one["strategy"]: one["parameters"] for one in recorded_runs.LANES}
    return {"strategy": strategy, "parameters": stored.get(strategy, {}), "seed": 0}


def expected(names: dict[str, str]) -> list[dict]:
    """The lanes for models of these names (role -> name), by their files; loads no model."""
    if "draft" not in names:
        second = "greedy"
    else:
        second = "universal" if same_tokens(names["target"], names["draft"]) is False else "speculative"
    return [lane("beam"), lane(second)]


def that_run(models: dict) -> list[dict]:
    """The lanes for these loaded models (role -> model): at most two, each of which they can run."""
    from decoders import suitability  # on demand: imports torch
    from decoders.registry import strategies

    known, found = strategies(), []
    for name in dict.fromkeys((*recorded_runs.OPENING, *origins.START, *known)):
        one = lane(name)
        if suitability.problem(known[name], known[name].check(one["parameters"]), models) is None:
            found.append(one)
        if len(found) == COUNT:
            break
    return found
