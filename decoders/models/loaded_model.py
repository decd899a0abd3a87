"""A causal language model with its tokenizer, its engine and its heads. Knows nothing of strategies."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import jinja2
import torch
import transformers

from decoders.engine.causal_masked_engine import CausalMaskedEngine
from decoders.engine.engine import Engine
from decoders.engine.flow_engine import FlowEngine
from decoders.engine.masked_engine import MaskedEngine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.state_engine import engine_of
from decoders.model_defaults import listed, settings_of
from decoders.models import catalog, head_files
from decoders.models.catalog import kind, sorted_draft, with_weights
from decoders.models.companions import loaded, shipped_companion
from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal

if TYPE_CHECKING:
    from decoders.heads import (
        M2R2,
        Acceptance,
        AdaEagle,
        Aligned,
        AutoDeco,
        DraftModule,
        Filter,
        Judge,
        KeyMask,
        Outlook,
        ParallelStreams,
        Planner,
        Ranker,
        Reward,
        TunedLens,
    )

ENGINES = {  # kind of model -> engine; all other kinds have a causal one
    "diffusion": MaskedEngine,
    "deer": MaskedEngine,
    "set_block": CausalMaskedEngine,
    "flow": FlowEngine,
    "wedlm": CausalMaskedEngine,
    "lud": CausalMaskedEngine,
}


@dataclass
class LoadedModel:
    """A language model, usually a causal one, with its tokenizer and its engine."""

    name: str
    model: torch.nn.Module
    tokenizer: transformers.PreTrainedTokenizerBase
    own_heads: list[str] = field(default_factory=list)  # the folders given to `add_heads`
    tokens_of: LoadedModel | None = None  # the model whose companion it is; see companions.py
    _companions: dict[str, LoadedModel | None] = field(default_factory=dict)

    @cached_property
    def model_kind(self) -> str:
        """Its kind as in catalog.py: causal, diffusion ..."""
        return kind(self.model.config.to_dict())

    @cached_property
    def engine(self) -> Engine | SequenceEngine | MaskedEngine | FlowEngine:
        return ENGINES.get(self.model_kind, engine_of)(self.model)

    @cached_property
    def bytes_of(self) -> TokenBytes:
        return TokenBytes(self.tokenizer)

    @property
    def eos(self) -> frozenset[int]:
        """End-of-text tokens: those of the generation config, else the tokenizer's."""
        ids = self.model.generation_config.eos_token_id
        ids = self.tokenizer.eos_token_id if ids is None else ids
        return frozenset(() if ids is None else [ids] if isinstance(ids, int) else ids)

    @property
    def generation(self) -> dict:
        """The processors that its generation config switches on: name -> value."""
        return settings_of(self.model.generation_config)

    @property
    def context(self) -> int:
        return self.engine.context

    @property
    def embedding(self) -> torch.Tensor | None:
        """The output embedding [V, d]; None if the model has none."""
        layer = self.model.get_output_embeddings()
        return None if layer is None else layer.weight

    @cached_property
    def token_key(self) -> str:
        """Equal for models with the same tokens, which can draft for each other."""
        if self.tokens_of is not None:
            return self.tokens_of.token_key
        return f"{head_files.tokenizer_sha256(self.tokenizer)} {self.engine.vocabulary}"

    @property
    def note(self) -> str | None:
        """A note for the lane if the model runs more slowly than usual, or has heads that the user added."""
        own = f"{self.name!r} has the heads {', '.join(map(repr, self.own_heads))}." if self.own_heads else ""
        return " ".join(filter(None, (self.engine.note, own))) or None

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt. Raises ValueError if it is empty."""
        ids = self.tokenizer(text)["input_ids"]
        if not text or not ids:
            raise Refusal("The prompt is empty; type at least one character.")
        return ids

    def encode_after(self, before: list[int], text: str) -> list[int]:
        """Token ids of `text` after the tokens `before`, without the special tokens that begin a text.

        As in the tokenization of the whole text, if that leaves `before` unchanged; else of `text` after a
        letter or a line break, or alone, whichever gives exactly these bytes.
        """
        own = [t for t in before if t not in self.bytes_of.special]
        leads = [(b"".join(map(self.bytes_of, own)).decode("utf-8", "replace"), own)]
        leads += [(lead, self.cut(lead)) for lead in ("a", "\n", "")]
        for lead, ids in leads:
            whole = self.cut(lead + text)
            behind = whole[len(ids) :]
            if whole[: len(ids)] == ids and b"".join(map(self.bytes_of, behind)) == text.encode():
                return behind
        return self.cut(text)  # the tokenizer normalises texts: its own version of this one

    @property
    def bytes(self) -> int:
        """The memory of its weights, with copies in other layouts, and of its KV cache at its present
        size.
        """
        own = sum(p.numel() * p.element_size() for p in self.model.parameters())
        copies = 3 if getattr(self.engine, "fast_llama", None) is not None else 1
        kept = getattr(getattr(self.engine, "cache", None), "storage", [])
        return own * copies + sum(t.numel() * t.element_size() for t in kept)

    @cached_property
    def heads(self) -> dict[str, DraftModule]:
        """Name -> draft module: those shipped for exactly this model, from all their folders, or the
        multi-token layer in the model's own files; empty if there are none. Raises Refusal with one
        sentence if they do not fit.
        """
        from decoders.models.model_heads import heads_inside

        return self._shipped("heads") or heads_inside(self.name, self.model)

    @cached_property
    def reward(self) -> Reward | None:
        """The reward head shipped for exactly this model, None if there is none. Raises Refusal with one
        sentence if it does not fit.
        """
        return next(iter(self._shipped("reward").values()), None)

    @cached_property
    def acceptance(self) -> Acceptance | None:
        """As `reward`: the head that predicts which of this draft model's tokens a target accepts."""
        return next(iter(self._shipped("acceptance").values()), None)

    @cached_property
    def adaeagle(self) -> AdaEagle | None:
        """As `reward`: the network that predicts the accepted length of a chain drafted by EAGLE's layer."""
        return next(iter(self._shipped("adaeagle").values()), None)

    @cached_property
    def judge(self) -> Judge | None:
        """As `reward`: the head that predicts which tokens are right."""
        return next(iter(self._shipped("judge").values()), None)

    @cached_property
    def lens(self) -> TunedLens | None:
        """As `reward`: the maps of a tuned lens for its intermediate states."""
        return next(iter(self._shipped("lens").values()), None)

    @cached_property
    def leank(self) -> KeyMask | None:
        """As `reward`: the key channels that the memory LeanK keeps."""
        return next(iter(self._shipped("leank").values()), None)

    @cached_property
    def outlook(self) -> Outlook | None:
        """As `reward`: the head that predicts how much of a window of drafted tokens is accepted."""
        return next(iter(self._shipped("outlook").values()), None)

    @cached_property
    def ranker(self) -> Ranker | None:
        """As `reward`: the head that scores how well a continuation fits the text before it."""
        return next(iter(self._shipped("ranker").values()), None)

    @cached_property
    def planner(self) -> Planner | None:
        """As `reward`: the head that predicts which units of a text a summary will cover."""
        return next(iter(self._shipped("planner").values()), None)

    @cached_property
    def streams(self) -> ParallelStreams | None:
        """As `reward`: the modules with which several streams write one answer."""
        return next(iter(self._shipped("streams").values()), None)

    @cached_property
    def m2r2(self) -> M2R2 | None:
        """As `reward`: the adapters of a fast residual stream through its first layers."""
        return next(iter(self._shipped("m2r2").values()), None)

    def _place(self) -> tuple[torch.dtype, torch.device]:
        """The dtype and the device of its weights."""
        return self.model.dtype, self.model.device

    def companion(self, wanted: str) -> LoadedModel | None:
        """This model if it is of kind `wanted` (see companions.py), else the shipped one of that kind with
        its tokens; None if there is none.
        """
        if wanted == self.model_kind:
            return self
        if wanted not in self._companions:
            companion = shipped_companion(self.tokenizer, wanted, *self._place())
            self._companions[wanted] = companion and LoadedModel(*companion, tokens_of=self)
        return self._companions[wanted]

    @cached_property
    def sorted_draft(self) -> LoadedModel | None:
        """The shipped draft for it that was trained to exit early; None if there is none."""
        if (name := sorted_draft(self.name)) is None:
            return None
        dtype, device = self._place()
        model = loaded(with_weights(name), dtype).to(device).eval().requires_grad_(False)
        return LoadedModel(name, model, self.tokenizer, tokens_of=self)

    @cached_property
    def filter(self) -> Filter | None:
        """As `reward`: the network that predicts which positions of a block hold their final token."""
        return next(iter(self._shipped("filter").values()), None)

    @cached_property
    def autodeco(self) -> AutoDeco | None:
        """As `reward`: the heads that set temperature and top-p for its next token."""
        return next(iter(self._shipped("autodeco").values()), None)

    @cached_property
    def aligned(self) -> Aligned | None:
        """As `reward`: a small network after its last layer that aligns its texts with some reward."""
        return next(iter(self._shipped("aligned").values()), None)

    def _shipped(self, wanted: str) -> dict[str, torch.nn.Module]:
        from decoders.models.model_heads import load_heads  # on demand: imports every kind of head

        modules: dict[str, torch.nn.Module] = {}
        for name in head_files.shipped_heads(wanted):
            if head_files.read_config(name, catalog.SHIPPED / name)["target"] == self.name:
                modules |= load_heads(name, self)
        return modules

    def capture(self) -> None:
        """Makes its engine record forwards as CUDA graphs on a GPU, if it can (`Engine.capture`)."""
        if isinstance(self.engine, Engine) and self.model.device.type == "cuda":
            self.engine.capture()

    @property
    def chats(self) -> bool:
        """Whether its tokenizer has a chat template."""
        return bool(self.tokenizer.chat_template)

    def render(self, message: str, system: str = "") -> str:
        """A user's message in the chat template, up to where the model answers.

        Raises Refusal with one sentence if there is no template or it raises.
        """
        if not self.chats:
            raise Refusal(f"The model {self.name!r} has no chat template; switch chat off.")
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": message})
        try:
            return self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except jinja2.TemplateError as error:
            reason = str(error).rstrip(".")
            raise Refusal(f"The chat template of {self.name!r} refuses this: {reason}.") from error

    def cut(self, text: str) -> list[int]:
        """Token ids of `text`: special tokens in it are recognised, and none are added."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def facts(self) -> dict:
        """Facts to display: parameters, layers, context, dtype, device."""
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
            "chat": self.chats,
            "generation settings": listed(self.generation) or "none",
        }
