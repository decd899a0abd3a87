"""A model that a server holds: `http://host:port/v1#name`, with a tokenizer of this machine.

Any server with OpenAI's completions endpoint that takes token ids and returns log-probabilities: vLLM,
SGLang. Only texts of token ids go there, and only log-probabilities come back.
"""

from functools import cached_property

import torch
from transformers import AutoTokenizer

from decoders.engine.served import ServedEngine, ServerProblem
from decoders.models.address import parsed
from decoders.models.catalog import locate
from decoders.models.completions_client import CompletionsClient
from decoders.models.loaded_model import LoadedModel


class ServedModel(LoadedModel):
    """As `LoadedModel`, without weights here: no heads, no hidden states, no layers."""

    def __init__(self, name: str, client: CompletionsClient, context: int, tokenizer):
        super().__init__(name, None, tokenizer)
        self.client, self._context = client, context

    model_kind = "causal"

    def _place(self) -> tuple[torch.dtype, torch.device]:
        return torch.float32, torch.device("cpu")

    @cached_property
    def engine(self) -> ServedEngine:
        return ServedEngine(self.client, self._context)

    @property
    def eos(self) -> frozenset[int]:
        """End-of-text tokens: the tokenizer's."""
        token = self.tokenizer.eos_token_id
        return frozenset(() if token is None else [token])

    @property
    def generation(self) -> dict:
        """None: a server's defaults for sampling are not asked for, and not used."""
        return {}

    @property
    def embedding(self) -> torch.Tensor | None:
        return None

    @property
    def bytes(self) -> int:
        """Of this machine's memory: next to nothing."""
        return 0

    def _shipped(self, wanted: str) -> dict:
        return {}

    def facts(self) -> dict:
        """As `LoadedModel.facts`, as far as a server tells."""
        top = self.engine.top
        return {
            "name": self.name,
            "architecture": "served",
            "vocabulary": self.engine.vocabulary,
            "context": self.context,
            "log-probabilities": "of all tokens" if top is None else f"of the {top} likeliest tokens",
            "device": self.client.base,
            "chat": self.chats,
        }


def connect(address: str) -> ServedModel:
    """The model at an address. Raises ValueError with one sentence if it cannot be used."""
    base, name, of = parsed(address)
    try:
        where, revision = locate(of)
        tokenizer = AutoTokenizer.from_pretrained(where, **({"revision": revision} if revision else {}))
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"There is no tokenizer {of[:80]!r} here; name one: {base}#{name},tokenizer=folder or Hub id."
        ) from error
    client = CompletionsClient(base, name, len(tokenizer))
    try:
        context = client.listed().get("max_model_len") or 1 << 17
        client.find_top()
    except ServerProblem as error:
        client.close()
        raise ValueError(str(error)) from error
    return ServedModel(address, client, context, tokenizer)
