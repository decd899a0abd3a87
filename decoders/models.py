"""Loads models: shipped ones, Hub ids (with @revision) and local folders; device, dtype, tokenizer
compatibility.

Weights come from safetensors only and no remote code runs. Knows nothing of strategies.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from decoders.engine import Engine
from decoders.names import locate
from decoders.sequences import SequenceEngine, engine_for
from decoders.vocabulary import TokenBytes


@dataclass
class LoadedModel:
    """A causal LM with its tokenizer and its engine."""

    name: str
    model: torch.nn.Module
    tokenizer: transformers.PreTrainedTokenizerBase

    @cached_property
    def engine(self) -> Engine | SequenceEngine:
        return engine_for(self.model)

    @cached_property
    def bytes_of(self) -> TokenBytes:
        return TokenBytes(self.tokenizer)

    @property
    def eos(self) -> frozenset[int]:
        """End-of-text tokens: those of the generation config, else the tokenizer's."""
        found = self.model.generation_config.eos_token_id
        found = self.tokenizer.eos_token_id if found is None else found
        return frozenset(() if found is None else [found] if isinstance(found, int) else found)

    @property
    def context(self) -> int:
        return self.engine.context

    @property
    def note(self) -> str | None:
        """A sentence for the lane if the model runs in a slower way than usual."""
        return self.engine.note

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt. Raises ValueError if it is empty."""
        ids = self.tokenizer(text)["input_ids"]
        if not text or not ids:
            raise ValueError("The prompt is empty; type at least one character.")
        return ids

    def encode_after(self, before: list[int], text: str) -> list[int]:
        """Token ids of `text` as it stands behind the tokens `before`, without what a text begins with.

        As the tokenizer cuts the whole text, if `before` stays as it is; else as it cuts `text` behind a
        letter or a line break, or alone: whichever gives these very bytes.
        """
        own = [t for t in before if t not in self.bytes_of.special]
        leads = [(b"".join(map(self.bytes_of, own)).decode("utf-8", "replace"), own)]
        leads += [(lead, self._cut(lead)) for lead in ("a", "\n", "")]
        for lead, ids in leads:
            whole = self._cut(lead + text)
            behind = whole[len(ids) :]
            if whole[: len(ids)] == ids and b"".join(map(self.bytes_of, behind)) == text.encode():
                return behind
        return self._cut(text)  # a tokenizer that rewrites texts: what it makes of this one

    def _cut(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def facts(self) -> dict:
        """What a person wants to know of it: parameters, layers, context, dtype, device."""
        config = self.model.config.get_text_config()
        return {
            "name": self.name,
            "architecture": type(self.model).__name__,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "layers": config.num_hidden_layers,
            "vocabulary": self.engine.vocabulary,
            "context": self.context,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": str(self.model.device),
        }


def pick_device(device: str = "auto") -> str:
    """`auto` is CUDA where there is one, else the CPU. Raises ValueError if the named device is not there."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise ValueError(f"There is no device {device!r}; use auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("This machine has no CUDA device; use --device cpu.")
    return device


def load(name: str, device: str = "auto", dtype: torch.dtype | None = None) -> LoadedModel:
    """Loads a shipped model, a folder, or a Hub id (optionally `id@revision`), in evaluation mode.

    dtype: float32 on the CPU and the model's own on CUDA unless given. Raises ValueError with one sentence.
    """
    device = pick_device(device)
    where, revision = locate(name)
    options = {"revision": revision} if revision else {}
    try:
        config = AutoConfig.from_pretrained(where, **options)
        tokenizer = AutoTokenizer.from_pretrained(where, **options)
        own = getattr(config, "dtype", None) or torch.float32
        chosen = dtype or (torch.float32 if device == "cpu" else own)
        model = AutoModelForCausalLM.from_pretrained(
            where, dtype=chosen, use_safetensors=True, trust_remote_code=False, **options
        )
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise ValueError(f"The model {name!r} could not be loaded: {first}") from error
    return LoadedModel(name, model.eval().requires_grad_(False).to(device), tokenizer)


def check_pair(target: LoadedModel, draft: LoadedModel) -> None:
    """Raises ValueError with one sentence unless the two speak the same vocabulary."""
    ours, theirs = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    if ours != theirs:
        different = len(set(ours.items()) ^ set(theirs.items()))
        raise ValueError(
            f"The draft {draft.name!r} has another tokenizer than the target {target.name!r} "
            f"({different:,} entries differ); choose a draft with the same vocabulary."
        )
    if draft.engine.vocabulary != target.engine.vocabulary:
        raise ValueError(
            f"The draft {draft.name!r} scores {draft.engine.vocabulary:,} tokens, the target {target.name!r} "
            f"{target.engine.vocabulary:,}; choose a draft with the same vocabulary."
        )
