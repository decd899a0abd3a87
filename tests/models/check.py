"""What one architecture does here: loads, its engine, whether it writes what `generate` writes, and which
strategies cannot run with it.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from decoders.engine.engine import Engine
from decoders.engine.fitting_engine import trial_prompt, trial_rows
from decoders.engine.kv_cache import slot_bytes
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane
from decoders.limits import Limits
from decoders.models.companions import KINDS
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.refusal import Refusal
from decoders.registry import strategies
from decoders.suitability import lacking
from tests.helpers import tiny_models
from tests.models import toy

TOKENS = 10
WORDS = tiny_models.tokenizer()
PROMPTS = [WORDS(text)["input_ids"] for text in ("the cat", "the cat sat on a mat; the cat")]
STATES = {"linear_attention", "conv", "hybrid", "hybrid_sliding"}  # kinds of layers
SEARCHES = {"beam": {"num_beams": 3}, "speculative": {"num_assistant_tokens": 3, "temperature": 0.0}}


@dataclass
class Row:
    """The findings about one architecture. Empty `engine`: it does not decode, and `why` says why not."""

    architecture: str
    engine: str = ""
    equal: str = ""
    refused: dict[str, int] = field(default_factory=dict)  # capability -> strategies that read it
    why: str = ""


def checked(architecture: str) -> Row:
    """The row of an architecture, from a toy model in a folder of its own."""
    if architecture in toy.NO_MODELS:
        return Row(architecture, why=toy.NO_MODELS[architecture])
    with tempfile.TemporaryDirectory() as folder:
        name = toy.save(architecture, Path(folder))
        try:
            model = load(name, "cpu")
            engine = model.engine
        except Refusal as error:
            return Row(architecture, why=str(error).replace(folder, architecture))
    if model.model_kind != "causal":
        return Row(architecture, why=f"counts as {KINDS[model.model_kind]}, since its config names a mask")
    row = Row(architecture, type(engine).__name__, comparison(model))
    row.refused = dict(Counter(map(str, refusals(model).values())))
    if isinstance(engine, SequenceEngine):
        row.why = why_no_tree(model)
    elif engine.cache.slots and taken(engine) != said(model):
        row.equal += f", but a token takes {taken(engine)} bytes and not {said(model)}"
    return row


def taken(engine: Engine) -> int:
    """The bytes of a token in the KV cache."""
    return engine.cache.nbytes // engine.cache.slots


def said(model: LoadedModel) -> int:
    """What the memory estimate says that is."""
    return slot_bytes(model.model.config.get_text_config(), model.engine.dtype.itemsize)


def why_no_tree(model: LoadedModel) -> str:
    """Why a model does not run on a tree engine: what the trial of one came upon."""
    config = model.model.config.get_text_config()
    kinds = {*(getattr(config, "layer_types", None) or ())}
    if any("compressed" in kind for kind in kinds):
        return "compresses the keys of several tokens"
    if model.model._is_stateful or kinds & STATES:
        return "keeps a state"
    prompt = trial_prompt(config, model.engine.vocabulary)
    try:
        tree = Tree(prompt)
        trial_rows(Engine(model.model).attach(tree), tree, len(prompt) - 1)
    except Exception:
        return "takes no mask of a tree"
    return "counts places by the order of the cache"


def refusals(model: LoadedModel) -> dict[str, Any]:
    """Strategy -> the capability that it reads and the model's engine does not give, for all that cannot
    run.
    """
    missing = {}
    for name, strategy in strategies().items():
        if strategy.writes_with != "causal":
            continue
        found = lacking(strategy, strategy.check({}), {"target": model})
        if found is not None and found[0] == "target":
            missing[name] = found[1]
    return missing


def comparison(model: LoadedModel) -> str:
    """Whether greedy decoding writes what `generate` writes, and whether a beam search and a speculative run
    write what they write with whole sequences.
    """
    ours = [greedy(model, prompt) for prompt in PROMPTS]
    whole = LoadedModel(model.name, model.model, model.tokenizer)
    whole.__dict__["engine"] = SequenceEngine(model.model)
    different = [name for name in SEARCHES if searched(name, model) != searched(name, whole)]
    answer = "yes"
    if ours != [generated(model, prompt) for prompt in PROMPTS]:
        if ours == [generated(model, prompt, use_cache=False) for prompt in PROMPTS]:
            answer = "`generate` differs from itself without a cache"
        elif (read := [forwarded(model, prompt) for prompt in PROMPTS]) == ours:
            answer = "`generate` differs from the model's forward"
        elif read != [forwarded(model, prompt) for prompt in PROMPTS]:
            return "its forwards differ from run to run"
        else:
            different.insert(0, "greedy")
    return f"not in {', '.join(different)}" if different else answer


def forwarded(model: LoadedModel, prompt: list[int]) -> list[int]:
    """The text of the most likely tokens by the model's own forwards over the text so far."""
    text = list(prompt)
    while len(text) < len(prompt) + TOKENS and text[-1] not in model.eos:
        output = model.model(input_ids=torch.tensor([text]), use_cache=False)
        text.append(int(output.logits[0, -1].argmax()))
    return text[len(prompt) :]


def greedy(model: LoadedModel, prompt: list[int]) -> list[int]:
    """The text of greedy decoding."""
    return Lane("greedy", prompt, {"target": model}, limits=Limits(TOKENS)).run().output()


def generated(model: LoadedModel, prompt: list[int], **options: Any) -> list[int]:
    """The text of transformers' `generate`."""
    return tiny_models.generate(model, prompt, max_new_tokens=TOKENS, **options)


def searched(name: str, model: LoadedModel) -> list[int]:
    """The text of a beam search or a speculative run after the longer prompt."""
    draft = LoadedModel("draft", tiny_models.make("llama").model, model.tokenizer)
    models = {"target": model, "draft": draft}
    return Lane(name, PROMPTS[1], models, SEARCHES[name], limits=Limits(TOKENS)).run().output()
