"""A model on a server, `http://host:port/v1#name`, or in vLLM in this process, `vllm:name`; its tokenizer is
loaded here.

A server with OpenAI's completions endpoint that accepts and returns token ids, such as vLLM, gives
log-probabilities after any text. One that returns tokens as text can only be followed while it decodes by
itself.
"""

from functools import cached_property

import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from decoders.engine.served import Client, ServedEngine, ServerProblem
from decoders.models import vllm_client
from decoders.models.address import InVllm, Server
from decoders.models.completions_client import CompletionsClient
from decoders.models.loaded_model import LoadedModel
from decoders.models.model_heads import Heads
from decoders.models.names import Edited, place, resolve
from decoders.models.openai_server import REFUSED
from decoders.models.text_stream_client import CHAT, COMPLETIONS, TextStreamClient
from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal


class ServedModel(LoadedModel):
    """As `LoadedModel`, but without local weights: no heads, no hidden states, no layers."""

    def __init__(self, name: str, client: Client, context: int, tokenizer):
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
        """Empty: a server's sampling defaults are neither read nor used."""
        return {}

    @property
    def chats(self) -> bool:
        """Whether a chat template is applied here; a server's chat endpoint applies its own."""
        return self.client.continues and super().chats

    @property
    def embedding(self) -> torch.Tensor | None:
        return None

    @property
    def bytes(self) -> int:
        """0: it takes next to no memory of this machine."""
        return 0

    @cached_property
    def heads(self) -> Heads:
        """None: they read states, which a server does not give."""
        return Heads()

    def facts(self) -> dict:
        """As `LoadedModel.facts`, as far as the server provides them."""
        top, whose = self.engine.top, "" if self.engine.scores else ", in its own text"
        return {
            "name": self.name,
            "architecture": "served",
            "vocabulary": self.engine.vocabulary,
            "context": self.context,
            "log-probabilities": "of all tokens" if top is None else f"of the top {top} tokens{whose}",
            "device": self.client.base,
            "chat": self.chats,
        }


def connect(server: Server) -> ServedModel:
    """The model on a server. Raises Refusal with one sentence if it cannot be used."""
    base, of = server.base, server.tokenizer
    try:
        tokenizer = tokenizer_of(*whole(of))
    except (OSError, ValueError, KeyError) as error:
        raise Refusal(
            f"There is no tokenizer {of[:80]!r} here; name one: {base}#{server.model},tokenizer=folder or "
            "Hub id."
        ) from error
    client = CompletionsClient(base, server.model, len(tokenizer))
    try:
        context = client.listed().get("max_model_len") or 1 << 17
        client = usable(client, tokenizer, server.chat)
    except ServerProblem as error:
        client.close()
        raise Refusal(str(error)) from error
    return ServedModel(server.name, client, context, tokenizer)


def usable(asked: CompletionsClient, tokenizer, chat: bool) -> Client:
    """A client for what the server provides: log-probabilities after any text, else those along its own text,
    from its chat endpoint if `chat`. Raises ServerProblem with one sentence if it provides none.
    """
    refusal = None
    if not chat:
        try:
            asked.find_top()
            return asked
        except ServerProblem as error:
            if error.status not in REFUSED:
                raise
            refusal = error
    for path in (CHAT,) if chat else (COMPLETIONS, CHAT):
        client = TextStreamClient(
            asked.base, asked.name, asked.vocabulary, path=path, bytes_of=TokenBytes(tokenizer)
        )
        try:
            client.find_top()
            asked.close()
            return client
        except ServerProblem as error:
            client.close()
            refusal = refusal or error
    raise refusal


def tokenizer_of(where: str, revision: str | None) -> PreTrainedTokenizerBase:
    """The tokenizer of a model on this machine or the Hub. Raises what transformers raises."""
    return AutoTokenizer.from_pretrained(where, revision=revision or "main", trust_remote_code=False)


def whole(name: str) -> tuple[str, str | None]:
    """`names.place` of a model that a server can hold. Raises Refusal with one sentence for any other."""
    match resolve(name):
        case Edited():
            raise Refusal(f"A server holds whole models, and {name!r} is edited; name its base.")
        case Server() | InVllm():
            raise Refusal(f"A model on a server has the tokens of a folder or Hub id, not of {name[:80]!r}.")
        case source:
            return place(source)


def start(model: InVllm) -> ServedModel:
    """The model in vLLM in this process. Raises Refusal with one sentence if it cannot be used."""
    where, revision = whole(model.model)
    tokenizer = tokenizer_of(where, revision)
    client = vllm_client.start(where, ({"revision": revision} if revision else {}) | model.options)
    return ServedModel(model.name, client, client.context, tokenizer)
