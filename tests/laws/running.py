"""Strategies as the laws run them: all that are registered, by name, on tiny random models."""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from decoders import registry
from decoders.engine.sequence_engine import SequenceEngine
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.trace.events import Cell, Commit
from tests.helpers import tiny_models
from tests.helpers.served_here import ServedHere

STRATEGIES = list(registry.strategies())
# each strategy as it comes, and those with a temperature both greedy and drawing
CASES = STRATEGIES + [
    f"{name} temperature={value}"
    for name, strategy in registry.strategies().items()
    for parameter in strategy.parameters
    for value in (0.0, 0.9)
    if parameter.name == "temperature" and (value == 0.0) != (parameter.default == 0.0)
]
CASES += ["dba phrases=#9,#33,#9"]  # with something to hold
ENDING = {
    "lopa": {"block_length": 8},  # in one block of masks random weights see no end
    "cards": {"target_reward": 0.0},  # short texts have low rewards
    "topic_plan": {"max_sentences": 1},  # to random weights the end is one topic of many
    "value_mcts": {"q_values": "as scored"},  # rescaled, what ends too early has 0 beside its siblings
}
# What sorts all probabilities of a random model meets ties of single precision; they depend on the machine.
BREAKS_TIES = {"coupling"}
NEW_TOKENS = 10  # several rounds, and into a second block of eight; every law decodes this many, so no more
PROMPTS = ((40, 41, 42, 40, 41), (7,), (200, 3, 3, 200, 3, 3, 200))
# of the module, since the models follow from the name
every_strategy = pytest.mark.parametrize("name", STRATEGIES, scope="module")
every_case = pytest.mark.parametrize("name", CASES, scope="module")


class Endless(tiny_models.TinyModel):
    """A model without an end-of-text token: its texts stop at limits only."""

    eos = frozenset()


def without_ends(model: LoadedModel) -> LoadedModel:
    """The same model without an end-of-text token."""
    if isinstance(model, ServedHere):
        return ServedHere(without_ends(model.client.model))
    return Endless(model.name, model.model, model.tokenizer, tokens_of=model.tokens_of)


def damaged(model: LoadedModel, token: int) -> LoadedModel:
    """The same model with no numbers in a token's embedding. A served one is sound: its server looks after
    its weights.
    """
    if isinstance(model, ServedHere):
        return model
    own = copy.deepcopy(model.model)
    own.get_input_embeddings().weight.data[token] = math.nan
    return tiny_models.TinyModel(model.name, own, model.tokenizer, tokens_of=model.tokens_of)


def without_tree_mask(model: LoadedModel) -> LoadedModel:
    """The same model in an engine that reads one text a row."""
    alike = tiny_models.TinyModel(model.name, model.model, model.tokenizer)
    alike.engine = SequenceEngine(model.model)
    return alike


_kept: dict[tuple, tuple] = {}


def kept(make: Callable[..., Any], model: LoadedModel, *more) -> Any:
    """What `make(model, *more)` gave first: its engine and heads take longer to build than a text."""
    key = (make, id(model), *more)
    if key not in _kept:
        _kept[key] = (model, make(model, *more))  # with the model, or another one might get its id
    return _kept[key][1]


def generated(model: LoadedModel, prompt: tuple[int, ...]) -> list[int]:
    """What transformers' `generate` writes greedily."""
    return tiny_models.generate(model, list(prompt), max_new_tokens=NEW_TOKENS)


def start(
    name,
    models,
    prompt=PROMPTS[0],
    new_tokens=NEW_TOKENS,
    seed=0,
    parameters=None,
    chooser=None,
    callbacks=None,
    **limits,
) -> Lane:
    name, *changes = name.split()
    parameters = dict(change.split("=") for change in changes) | (parameters or {})
    limited = Limits(max_new_tokens=new_tokens, **limits)
    return Lane(name, list(prompt), models, parameters, seed, limited, chooser, callbacks=callbacks)


def check_cells(found):
    """Each token of a canvas has the probability with which the last of its cells was filled, and is it."""
    cells = [c for s in found.steps for c in s.of(Cell) if c.level is None]
    cells = {c.position: c for c in cells if c.state not in ("mask", "trimmed")}
    logprobs = [p for s in found.steps for c in s.of(Commit) for p in c.logprobs]
    last = [cells[len(found.prompt) + i] for i in range(len(logprobs))]
    assert [c.token for c in last] == found.output()
    assert [math.exp(p) for p in logprobs] == pytest.approx([c.confidence for c in last], abs=1e-6)
