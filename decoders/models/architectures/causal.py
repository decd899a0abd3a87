"""The base of all small causal architectures: a transformers model that can continue from a state.

An architecture defines how it reads tokens (`read`); losses, logits, files and `generate` are here.
"""

import torch
from torch import nn
from transformers import GenerationConfig, GenerationMixin, LlamaConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from decoders.models.architectures.layers import State


class ArchitectureConfig(LlamaConfig):
    """Llama's names for sizes; each architecture's own settings are further fields of its config."""

    model_type = "tiny"


class Architecture(PreTrainedModel, GenerationMixin):
    """Token embedding, an architecture's layers, a norm, and a tied head."""

    config_class, _supports_sdpa = ArchitectureConfig, True

    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.norm = nn.RMSNorm(config.hidden_size, eps=1e-6)
        self.build(config)
        self.generation_config = GenerationConfig(eos_token_id=config.eos_token_id)
        self.post_init()

    def build(self, config: LlamaConfig) -> None:
        """Creates the layers."""
        raise NotImplementedError

    def read(
        self, ids: torch.Tensor, state: State = None, last_only: bool = False
    ) -> tuple[torch.Tensor, State]:
        """(states [B, T, d] that predict the token after each of `ids` [B, T], the state to continue from).

        state: the one that an earlier call returned, None at the start. last_only: only the last token's, [B,
        1, d].
        """
        raise NotImplementedError

    def logits_of(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of the token that each state [..., d] predicts."""
        return self.norm(states) @ self.embed.weight.T

    def forward(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        **ignored: object,
    ) -> CausalLMOutput:
        """As every causal model of transformers, but without a state: reads the whole text [B, T]. The only
        hidden state is the head's input.
        """
        states, _ = self.read(input_ids)
        logits = self.logits_of(states)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        shown = (self.norm(states),) if output_hidden_states else None
        return CausalLMOutput(loss=loss, logits=logits, hidden_states=shown)

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **ignored: object) -> dict:
        """`generate` reads the whole text for every token."""
        return {"input_ids": input_ids}

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings."""
        return self.embed

    def get_output_embeddings(self) -> nn.Module:
        """The head, tied to the input embeddings."""
        return self.embed

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)
