"""The language model inside a model that also reads images or sound: what it reads those with is neither
built nor read from its files.

transformers reads the weights into its own class of the whole model, which knows their names in files of any
age. The result is the first of these that gives the whole model's numbers for a short text: a model of the
text part's own class (LLaVA's Llama), the decoder with the output matrix (for Qwen2-VL, which has no such
class), the whole model.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoModelForCausalLM,
    GenerationMixin,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.modeling_outputs import CausalLMOutputWithPast

from decoders.engine.partial_forward import agree
from decoders.models.load_problems import failed, quoted
from decoders.models.model_files import read_weights
from decoders.refusal import Refusal, said_by

TRIAL = 12  # tokens of the text on which the parts are compared with the whole


def parameters(name: str, whole: type, config: PreTrainedConfig) -> int:
    """How many parameters the language model of a whole model has. Raises Refusal with one sentence if the
    whole cannot be built, for example for lack of a package.
    """
    try:
        with torch.device("meta"):
            try:
                model = built_for_text(whole)(config)
            except ImportError:
                model = AutoModelForCausalLM.from_config(read_alone(config), trust_remote_code=False)
        return sum(one.numel() for one in model.parameters())
    except Exception as error:  # of a false config it raises whatever its code comes upon
        raise Refusal(failed(name, quoted(error))) from error


def read(
    name: str, whole: type, folder: Path, **options: Any
) -> tuple[PreTrainedModel, list[str], list[str]]:
    """The language model in the folder of a whole model, the weights in its files that have no place in the
    whole, and the parts of the whole that are not loaded. options: as of `read_weights`.

    Raises Refusal with one sentence, and what transformers raises.
    """
    try:
        model, unused = read_weights(name, built_for_text(whole), folder, **options)
    except ImportError:
        options |= {"config": read_alone(options["config"])}
        model, unused = read_weights(name, AutoModelForCausalLM, folder, **options)
        return model, [], sorted({".".join(weight.split(".")[:2]) for weight in unused})
    left_out = tuple(f"{part}." for part in model.left_out)
    unused = [weight for weight in unused if not weight.startswith(left_out)]
    return language_model(name, model.eval()), unused, model.left_out


def read_alone(config: PreTrainedConfig) -> PreTrainedConfig:
    """The config of the text part of a whole model that cannot be built for lack of a package (Gemma 3n's
    images need timm), if transformers can read that part from the files of the whole. Otherwise raises the
    ImportError that is being handled.
    """
    text = config.get_text_config()
    if type(text) in MODEL_FOR_CAUSAL_LM_MAPPING and get_checkpoint_conversion_mapping(text.model_type):
        return text
    raise


def built_for_text(whole: type) -> type:
    """A model's class whose instances lack all parts but those on the way from its input embeddings through
    its decoder to its output matrix.
    """

    def start(self: PreTrainedModel, config: PreTrainedConfig, *given: Any, **options: Any) -> None:
        whole.__init__(self, config, *given, **options)
        kept = {self.get_decoder(), self.get_input_embeddings(), self.get_output_embeddings()}
        self.left_out = list(pruned(self, kept))

    return type(whole.__name__, (whole,), {"__init__": start, "__module__": whole.__module__})


def pruned(module: nn.Module, kept: set[nn.Module | None], path: str = "") -> Iterator[str]:
    """Removes what neither is one of the modules `kept` nor holds one, and yields the names."""
    for name, child in list(module.named_children()):
        if child in kept:
            continue
        if kept.isdisjoint(child.modules()):
            del module._modules[name]
            yield path + name
        else:
            yield from pruned(child, kept, f"{path}{name}.")


class TextDecoder(PreTrainedModel, GenerationMixin):
    """A decoder with an output matrix, as a causal language model."""

    base_model_prefix = "model"
    _supports_sdpa = True

    def __init__(self, decoder: PreTrainedModel, head: nn.Module) -> None:
        super().__init__(decoder.config)
        self.model, self.lm_head = decoder, head

    @classmethod
    def _can_set_experts_implementation(cls) -> bool:
        """True: the decoder's own class has chosen how its experts run, and it stays so."""
        return True

    def forward(
        self, input_ids: torch.Tensor | None = None, logits_to_keep: int = 0, **options: Any
    ) -> CausalLMOutputWithPast:
        """The logits [B, T, V], of the last `logits_to_keep` tokens if it is not 0."""
        output = self.model(input_ids=input_ids, **options)
        logits = self.lm_head(output.last_hidden_state[:, -logits_to_keep:])
        return CausalLMOutputWithPast(
            logits=logits, past_key_values=output.past_key_values, hidden_states=output.hidden_states
        )


@torch.inference_mode()
def language_model(name: str, whole: PreTrainedModel) -> PreTrainedModel:
    """The language model of a whole model, whose weights it shares. Raises Refusal with one sentence if the
    whole cannot read text alone, or not from left to right.
    """
    ids = trial_text(whole)
    try:
        wanted = whole(input_ids=ids).logits
        begun = whole(input_ids=ids[:, :-2]).logits
    except Exception as error:  # of an input that it lacks a model raises whatever its code comes upon
        why = f"it does not read text alone ({type(error).__name__}: {said_by(error)})."
        raise Refusal(failed(name, why)) from error
    if wanted.shape[:2] != ids.shape or not agree(wanted[0, :-2], begun[0], whole.dtype):
        why = "it does not read a text from left to right; choose a causal language model."
        raise Refusal(failed(name, why))
    for part in parts(whole):
        with suppress(AttributeError, TypeError, ValueError, RuntimeError):
            if agree(part(input_ids=ids).logits[0], wanted[0], whole.dtype):
                return part
    return whole


def trial_text(whole: PreTrainedModel) -> torch.Tensor:
    """Token ids [1, T] of a short text without the tokens that stand for images and the like."""
    configs = (whole.config.to_dict(), whole.config.get_text_config().to_dict())
    marks = {one for config in configs for name, one in config.items() if name.endswith(("_id", "_index"))}
    ids = (at for at in range(1, whole.get_output_embeddings().weight.shape[0]) if at not in marks)
    return torch.tensor([[at for at, _ in zip(ids, range(TRIAL), strict=False)]], device=whole.device)


def parts(whole: PreTrainedModel) -> Iterator[PreTrainedModel]:
    """What may be the language model of a whole model, the plainest first."""
    decoder, head = whole.get_decoder(), whole.get_output_embeddings()
    if decoder is whole:
        return
    if decoder.get_output_embeddings() is not None:
        yield decoder
    makers: tuple[Callable, ...] = (in_its_class, TextDecoder)
    for make in makers:
        with suppress(AttributeError, TypeError, ValueError):
            part = make(decoder, head)
            part.config.tie_word_embeddings = head.weight is part.get_input_embeddings().weight
            if hasattr(whole.config, "quantization_config"):
                part.config.quantization_config = whole.config.quantization_config
            part.generation_config = whole.generation_config
            yield part.eval()


def in_its_class(decoder: PreTrainedModel, head: nn.Module) -> PreTrainedModel:
    """The decoder and the output matrix in transformers' class for them. Raises ValueError if it has none, or
    one with further weights.
    """
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(decoder.config, trust_remote_code=False)
    setattr(model, model.base_model_prefix, decoder)
    model.set_output_embeddings(head)
    if any(value.is_meta for value in (*model.parameters(), *model.buffers())):
        raise ValueError(f"{type(model).__name__} has weights of its own")
    return model
