"""Models that write about something outside their text: an encoder-decoder with one source, and a causal
model after a source that only it sees. Both behave like a causal language model of the written text, so that
every strategy can decode with them.
"""

from types import SimpleNamespace

import torch
from torch import nn
from transformers import GenerationConfig, PretrainedConfig

from decoders.engine.sequence_engine import SequenceEngine
from decoders.models.loaded_model import LoadedModel


class Conditioned(nn.Module):
    """`inner` with a source, tokens [S], which is not part of the texts [B, T] that it is given. An
    encoder-decoder reads it once, with its encoder; for any other model it is the beginning of every text.
    """

    def __init__(self, inner: nn.Module, source: list[int], context: int, layers: int):
        super().__init__()
        self.inner, self.source = inner, source
        self.config = PretrainedConfig(
            vocab_size=inner.get_output_embeddings().weight.shape[0],
            num_hidden_layers=layers,
            max_position_embeddings=context,
        )
        eos = inner.generation_config.eos_token_id
        self.generation_config = GenerationConfig(
            eos_token_id=inner.config.eos_token_id if eos is None else eos
        )
        self.encoded: object | None = None

    @property
    def device(self) -> torch.device:
        return self.inner.device

    @property
    def dtype(self) -> torch.dtype:
        return self.inner.dtype

    def get_input_embeddings(self) -> nn.Module:
        return self.inner.get_input_embeddings()

    def get_output_embeddings(self) -> nn.Module:
        return self.inner.get_output_embeddings()

    def forward(self, input_ids: torch.Tensor, **ignored: object) -> SimpleNamespace:
        """Logits [B, T, V] after each token of texts [B, T]."""
        before = torch.tensor([self.source] * len(input_ids), dtype=torch.long, device=self.device)
        if not self.inner.config.is_encoder_decoder:
            logits = self.inner(input_ids=torch.cat([before, input_ids], 1), use_cache=False).logits
            return SimpleNamespace(logits=logits[:, len(self.source) :])
        if self.encoded is None:
            self.encoded = self.inner.get_encoder()(before[:1])
        states = self.encoded.last_hidden_state.expand(len(input_ids), -1, -1)
        out = self.inner(encoder_outputs=(states,), decoder_input_ids=input_ids, use_cache=False)
        return SimpleNamespace(logits=out.logits)


def conditioned(inner: nn.Module, source: list[int], like: LoadedModel, name: str) -> LoadedModel:
    """`inner` with this source as a model that strategies can decode with; its tokens are those of `like`."""
    layers = inner.config.num_hidden_layers
    model = Conditioned(inner, source, like.context - len(source), layers).eval()
    loaded = LoadedModel(name, model, like.tokenizer, tokens_of=like)
    loaded.engine = SequenceEngine(model)  # the source is not in the text, so a tree mask would not fit
    return loaded
