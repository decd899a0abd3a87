"""Random models in float64 with more layers than the usual tiny ones, whose layers can be skipped."""

from functools import cache

import torch
import transformers as T

from decoders.engine.engine import Engine
from decoders.heads import Taps, Target, take_taps
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.trace.events import Propose
from decoders.trace.trace import Trace
from tests.helpers import tiny_models

PROMPT = [40, 41, 42, 40, 41]
TEXT = torch.randint(0, 250, (2, 14), generator=torch.Generator().manual_seed(5))  # two texts of 14 tokens
KINDS = {
    "llama": (T.LlamaForCausalLM, T.LlamaConfig),
    "qwen2": (T.Qwen2ForCausalLM, T.Qwen2Config),
    "mistral": (T.MistralForCausalLM, T.MistralConfig),
}


class Endless(LoadedModel):
    """A model without an end-of-text token."""

    eos = frozenset()


def deep(kind: str = "llama", layers: int = 6, vocabulary: int = 260, seed: int = 3) -> LoadedModel:
    """A model whose texts end only at limits."""
    torch.manual_seed(seed)
    sizes = {**tiny_models.ROPE, "num_hidden_layers": layers, "vocab_size": vocabulary, "eos_token_id": None}
    make, config = KINDS[kind]
    model = make(config(**sizes, max_position_embeddings=128, initializer_range=0.2))
    model = model.double().eval().requires_grad_(False)
    found = Endless(f"deep-{kind}", model, tiny_models.tokenizer())
    found.__dict__["engine"] = Engine(model)  # as it is, whatever the vocabulary
    return found


def with_heads(**how) -> LoadedModel:
    """A deep model with all heads, their weights random."""
    model = deep(**how)
    model.__dict__["heads"] = tiny_models.random_modules(Target.of(model.model))
    return model


def run(strategy: str, model: LoadedModel, parameters: dict | None = None, tokens: int = 20, **how) -> Trace:
    """The trace of one lane."""
    return Lane(strategy, PROMPT, {"target": model}, parameters, limits=Limits(tokens), **how).run()


@cache
def greedys(kind: str = "llama", tokens: int = 20) -> list[int]:
    """Greedy decoding's text with a deep model, computed once."""
    return run("greedy", deep(kind), tokens=tokens).output()


def drafts(step) -> list[Propose]:
    """The draft's guesses in a step."""
    return [p for p in step.of(Propose) if p.source == "draft"]


def take_double(model, tokens: torch.Tensor, layers: tuple[int, ...] = ()) -> Taps:
    """Taps with states in the models' own float64."""
    taps = take_taps(model, tokens, layers)
    states = {layer: state.double() for layer, state in taps.states.items()}
    return Taps(taps.tokens, taps.hidden.double(), states, taps.logits, taps.past)
