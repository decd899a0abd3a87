"""A causal language model with its tokenizer, its engine and its heads."""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import jinja2
import torch
import transformers

from decoders.engine.causal_masked_engine import CausalMaskedEngine
from decoders.engine.engine import Engine
from decoders.engine.fitting_engine import engine_of
from decoders.engine.flow_engine import FlowEngine
from decoders.engine.masked_engine import MaskedEngine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.model_defaults import listed, settings_of
from decoders.models import head_files
from decoders.models.catalog import kind, sorted_draft, with_weights
from decoders.models.companions import loaded, shipped_companion
from decoders.models.names import shipped_name
from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal, said_by

if TYPE_CHECKING:
    from decoders.models.model_heads import Heads

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
    own_heads: dict[str, tuple[str, ...]] = field(default_factory=dict)  # those of `add_heads`
    unused_weights: list[str] = field(default_factory=list)  # in its files, without a place in the model
    parts_left_out: list[str] = field(default_factory=list)  # those that read images or sound
    tokens_of: LoadedModel | None = None  # the model whose companion it is; see companions.py
    left_out: int = 0  # rows of the output matrix that it does without: no token has them
    _companions: dict[str, LoadedModel | None] = field(default_factory=dict)
    _narrower: dict[int, LoadedModel] = field(default_factory=dict)

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
    def special(self) -> set[int]:
        """Tokens that are no piece of a text."""
        return self.bytes_of.special

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
        """Equal for models with the same tokens, which can draft for each other; their output matrices may
        have further rows, see `narrower`.
        """
        if self.tokens_of is not None:
            return self.tokens_of.token_key
        return head_files.tokenizer_sha256(self.tokenizer)

    def narrower(self, rows: int) -> LoadedModel:
        """This model with at most so many rows of its output matrix, and with none beyond its last token: the
        others have probability 0. It shares all weights and heads, and has an engine of its own. Raises
        Refusal with one sentence if its output matrix cannot be cut.
        """
        rows = min(rows, max(self.tokenizer.get_vocab().values()) + 1)
        if self.engine.vocabulary <= rows or self.tokens_of is not None:
            return self
        if rows not in self._narrower:
            model = copy.copy(self)
            model.left_out = self.engine.vocabulary - rows
            model.model = with_rows(self.name, self.model, rows)
            model.__dict__["engine"] = ENGINES.get(self.model_kind, engine_of)(model.model)
            model.__dict__["heads"] = self.heads
            self._narrower[rows] = model
        return self._narrower[rows]

    @property
    def note(self) -> str | None:
        """A note for the lane if the model runs more slowly than usual, has heads that the user added, or
        does not use all weights in its files.
        """
        own = f"{self.name!r} has the heads {', '.join(map(repr, self.own_heads))}." if self.own_heads else ""
        left = ""
        if self.unused_weights:
            count, first = len(self.unused_weights), self.unused_weights[0]
            some = "1 weight has" if count == 1 else f"{count:,} weights have"
            left = f"Files of {self.name!r}: {some} no place in the model: {first}{' ...' * (count > 1)}"
        rows = ""
        if self.left_out:
            rows = f"{self.left_out:,} rows of {self.name!r} correspond to no token and are left out."
        text = ""
        if self.parts_left_out:
            text = f"{self.name!r} reads text alone here, without its {' and '.join(self.parts_left_out)}."
        return " ".join(filter(None, (self.engine.note, own, left, rows, text))) or None

    def encode(self, text: str) -> list[int]:
        """Token ids of a prompt. Raises Refusal if it is empty."""
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
        return own * copies + getattr(getattr(self.engine, "cache", None), "nbytes", 0)

    @cached_property
    def heads(self) -> Heads:
        """Its heads by kind: those shipped for exactly this model, or the layer in its own files, and those
        that were added (`add_heads`).
        """
        from decoders.models.model_heads import shipped_for

        return shipped_for(self)

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
        if (name := sorted_draft(shipped_name(self.name))) is None:
            return None
        dtype, device = self._place()
        model = loaded(with_weights(name), dtype).to(device).eval().requires_grad_(False)
        return LoadedModel(name, model, self.tokenizer, tokens_of=self)

    def capture(self) -> None:
        """Makes its engine record forwards as CUDA graphs on a GPU, if it can (`Engine.capture`)."""
        if isinstance(self.engine, Engine) and self.model.device.type == "cuda":
            self.engine.capture()

    @property
    def chats(self) -> bool:
        """Whether its tokenizer has a chat template."""
        return bool(self.tokenizer.chat_template)

    @property
    def chat_template(self) -> str:
        """Its tokenizer's chat template, or all that it has; "" without one."""
        own = self.tokenizer.chat_template or ""
        return own if isinstance(own, str) else "\n".join(map(str, dict(own).values()))

    def render(self, message: str, system: str = "") -> str:
        """A user's message in the chat template, up to where the model answers.

        Raises Refusal with one sentence if there is no template or it fails in any way.
        """
        if not self.chats:
            raise Refusal(f"The model {self.name!r} has no chat template; switch chat off.")
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": message})
        fill = partial(self.tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True)
        try:
            text = fill(messages)
            if message.strip() not in text:  # templates of models that read images expect a list of parts
                parts = [one | {"content": [{"type": "text", "text": one["content"]}]} for one in messages]
                with suppress(jinja2.TemplateError, TypeError):
                    in_parts = fill(parts)
                    text = in_parts if message.strip() in in_parts else text
            return text
        except jinja2.TemplateError as error:
            raise Refusal(f"The chat template of {self.name!r} refuses this: {said_by(error)}.") from error
        except Exception as error:  # a template is a program: it may divide by zero or have no end
            raise Refusal(
                f"The chat template of {self.name!r} cannot be used ({type(error).__name__}: "
                f"{said_by(error)}); correct it in tokenizer_config.json or chat_template.jinja, or switch "
                "chat off."
            ) from error

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


def with_rows(name: str, model: torch.nn.Module, rows: int) -> torch.nn.Module:
    """A model with the first `rows` rows of its output matrix; all weights are shared. Raises Refusal with
    one sentence if that is no plain matrix of its own.
    """
    head = model.get_output_embeddings()
    place = next((place for place, one in model.named_children() if one is head), None)
    if place is None or type(head) is not torch.nn.Linear:
        raise Refusal(
            f"{name!r} scores more tokens than its partner, which scores {rows:,}, and its output matrix "
            "cannot be cut; choose a pair with as many rows."
        )
    few = torch.nn.Linear(head.in_features, rows, head.bias is not None, device="meta")
    few.weight = torch.nn.Parameter(head.weight[:rows], requires_grad=False)
    if head.bias is not None:
        few.bias = torch.nn.Parameter(head.bias[:rows], requires_grad=False)
    small = copy.copy(model)
    small._modules = {**model._modules, place: few}
    return small.eval()
