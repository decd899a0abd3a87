"""An encoder-decoder for code with the tasks of CodeT5 (Wang et al. 2021) and the modes of CodeT5+ (Wang et
al. 2023): it fills in spans, continues text after an empty source, and finds similar texts by one vector per
text.

The layers are transformers' T5; `sentinels.py` masks spans and fills in answers.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, normalize, pad
from transformers import T5Config, T5ForConditionalGeneration

from decoders.models.architectures.source_stream import SourceStream

PAPERS = ("codet5-identifier-a", "codet5")


class CodeT5Config(T5Config):
    """sentinels: ids of the sentinel tokens, in order. embedding: size of the vectors by which texts are
    found.
    """

    model_type = "codet5_stream"

    def __init__(
        self,
        separator: tuple[int, ...] = (),
        sentinels: tuple[int, ...] = (),
        embedding: int = 32,
        max_position_embeddings: int = 512,
        **rest: Any,
    ):
        self.separator, self.sentinels, self.embedding = list(separator), list(sentinels), embedding
        self.max_position_embeddings = max_position_embeddings
        super().__init__(**rest | {"is_encoder_decoder": False})


class CodeT5Stream(SourceStream):
    """The source follows a begin token, so that an empty source is that token alone, and only the decoder has
    a text to continue.
    """

    config_class = CodeT5Config

    def __init__(self, config: CodeT5Config):
        super().__init__(config)
        self.t5 = T5ForConditionalGeneration(config)
        self.tags = nn.Linear(config.d_model, 1)  # whether a token is part of an identifier
        self.projection = nn.Linear(config.d_model, config.embedding)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Initialises the two layers that are not T5's; T5 initialises its own."""
        if module in (self.tags, self.projection):
            nn.init.normal_(module.weight, std=self.config.d_model**-0.5)
            nn.init.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Embedding:
        """The input embeddings."""
        return self.t5.shared

    @property
    def head(self) -> nn.Module:
        """The map from states to logits."""
        return self.t5.lm_head

    def read(self, sources: torch.Tensor, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Encoder states [N, 1 + S, d] of a begin token and the source [N, S], and the mask of their
        places.
        """
        marked, there = pad(sources, (1, 0), value=self.config.eos_token_id), pad(seen, (1, 0), value=True)
        states = self.t5.encoder(input_ids=marked, attention_mask=there.long()).last_hidden_state
        return states, there

    def written(self, memory: torch.Tensor, there: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """Decoder states [N, A + 1, d] after a start token and each token of the answers [N, A]."""
        started = pad(answers, (1, 0), value=self.config.decoder_start_token_id)
        states = self.t5.decoder(
            input_ids=started,
            encoder_hidden_states=memory,
            encoder_attention_mask=there.long(),
            use_cache=False,
        ).last_hidden_state
        return states * self.config.d_model**-0.5  # T5 scales the input of a tied head

    def answer_states(self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """As `SourceStream.answer_states`."""
        return self.written(*self.read(sources, seen), answers)

    def tagged(self, sources: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Logits [N, S] that each token of a source is part of an identifier."""
        return self.tags(self.read(sources, seen)[0][:, 1:])[..., 0]

    def vectors(self, sources: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """A unit vector [N, embedding] for each source: the mean of its states, projected. No gradient
        reaches the encoder, so that training this leaves the other modes unchanged; in CodeT5+ it does.
        """
        with torch.no_grad():
            states, there = self.read(sources, seen)
        weights = there[..., None].to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return normalize(self.projection(mean), dim=-1)

    def alike(self, sources: torch.Tensor, seen: torch.Tensor, query: int) -> torch.Tensor:
        """Cosine similarities [N] of each source's vector and that of source number `query`."""
        vectors = self.vectors(sources, seen)
        return cosine_similarity(vectors, vectors[query][None])


MODEL = CodeT5Stream
