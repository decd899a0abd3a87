"""Whether models can run a strategy: first what it reads from each engine (see `engine.capabilities`), then
what the target itself must have.
"""

from collections.abc import Mapping
from typing import Any

from decoders import memory_options as options
from decoders import registry
from decoders.constraints import bias
from decoders.engine.capabilities import Capability
from decoders.memory.lane_memory import misfit
from decoders.models.companions import KINDS
from decoders.strategy import Strategy


def problem(strategy: Strategy, parameters: dict, models: Mapping[str, Any]) -> str | None:
    """Why these models (role -> model) cannot run a strategy: a message that names what is missing and a
    strategy that they can run. None if they can.
    """
    for role in strategy.needs:
        if models.get(role) is None:
            return f"{strategy.title} needs a {role} model; name one."
    if models["target"].companion(strategy.writes_with) is None:
        return other_kind(strategy, models)
    models = taken(strategy, parameters, models)
    if sentence := unlike(strategy, models):
        return sentence
    if options.has(parameters) and not strategy.takes_memory:
        return f"{strategy.title} decodes with the full cache only; choose memory none."
    if sentence := misfit(parameters, models) or bias.bias_problem(parameters, models):
        return sentence
    missing = lacking(strategy, parameters, models)
    if missing is None:
        return strategy.suits(parameters, models["target"])
    role, capability = missing
    engine = models[role].engine
    sentence = f"{strategy.title} reads {capability} of the {role}, which {engine.kind} does not give"
    other = alternative(strategy, models)
    return f"{sentence}; choose {' or '.join(filter(None, (other, engine.remedy)))}."


def taken(strategy: Strategy, parameters: dict, models: Mapping[str, Any]) -> dict[str, Any]:
    """Role -> model as a strategy uses them: a target of the kind that it writes with (None if there is
    none), and the draft that it prefers.
    """
    own = {**models, "target": models["target"].companion(strategy.writes_with)}
    return own if strategy.draft_of is None else own | {"draft": strategy.draft_of(parameters, own)}


def with_shared_rows(models: Mapping[str, Any]) -> dict[str, Any]:
    """These models (role -> model), cut so that all models with the target's tokens have the same rows of
    scores: models of one family pad their vocabulary differently. Raises Refusal with one sentence if one
    cannot be cut.
    """
    key = models["target"].token_key
    same = {role: model for role, model in models.items() if model.token_key == key}
    rows = {model.engine.vocabulary for model in same.values()}
    if len(rows) == 1:
        return dict(models)
    return {**models, **{role: model.narrower(min(rows)) for role, model in same.items()}}


def other_kind(strategy: Strategy, models: Mapping[str, Any]) -> str:
    """The message about a target of a kind that a strategy cannot write with."""
    wanted, target = KINDS[strategy.writes_with], models["target"]
    fitting = sorted(registry.strategies().values(), key=lambda one: difference(one, strategy))
    first = next((one.title for one in fitting if runs(one, models)), None)
    shipped = "" if strategy.writes_with == "causal" else ", and no shipped one has the same tokens"
    other = f"another target, or {first}" if first else "another target"
    return f"{strategy.title} writes with {wanted}, which {target.name!r} is not{shipped}; choose {other}."


def unlike(strategy: Strategy, models: Mapping[str, Any]) -> str | None:
    """Why the draft cannot draft for this target: a message if their vocabularies differ, else None."""
    target = models["target"]
    for role in () if strategy.any_tokenizer else (*strategy.needs, *strategy.may_use):
        draft = models.get(role)
        if draft is not None and draft.token_key != target.token_key:
            others = [one.title for one in registry.strategies().values() if one.any_tokenizer]
            return (
                f"The {role} {draft.name!r} has another tokenizer than the target {target.name!r}; choose "
                f"{' or '.join(others)}, or a draft with the same tokens."
            )
    return None


def lacking(strategy: Strategy, parameters: dict, models: Mapping[str, Any]) -> tuple[str, Capability] | None:
    """The first (role, capability) that a strategy reads and a model's engine does not give."""
    for role in () if strategy.follows else (*strategy.needs, *strategy.may_use):
        if (model := models.get(role)) is not None and not getattr(model.engine, "scores", True):
            return role, Capability.NEXT_TOKENS
    for role, wanted in strategy.reads(parameters).items():
        if (model := models.get(role)) is not None:
            for capability in wanted:
                if not model.engine.gives(capability):
                    return role, capability
    return None


def alternative(strategy: Strategy, models: Mapping[str, Any]) -> str | None:
    """The title of a strategy that these models can run with its defaults: the same one, else the most
    similar one of its family, else one that follows a server.
    """
    if runs(strategy, models):
        return f"{strategy.title} with its default settings"
    family = [one for one in registry.strategies().values() if one.family == strategy.family]
    family.sort(key=lambda one: difference(one, strategy))
    followers = [one for one in registry.strategies().values() if one.follows]
    return next((one.title for one in (*family, *followers) if runs(one, models)), None)


def difference(one: Strategy, strategy: Strategy) -> tuple:
    """How much two strategies differ, as a sort key; ties go to those of `generate`, then to simple ones."""
    usual = one.badge(one.check({})) == "equal to generate"
    return one.needs != strategy.needs, -len({*one.views} & {*strategy.views}), not usual, len(one.parameters)


def runs(strategy: Strategy, models: Mapping[str, Any]) -> bool:
    """Whether models can run a strategy with its default settings."""
    parameters = strategy.check({})
    if any(models.get(role) is None for role in strategy.needs):
        return False
    models = taken(strategy, parameters, models)
    return (
        models["target"] is not None
        and not unlike(strategy, models)
        and not lacking(strategy, parameters, models)
        and not strategy.suits(parameters, models["target"])
    )
