"""A source and its answer in one token sequence, split at the first separator, so that every strategy for
causal models can decode a model that reads a source.

A text without a separator is an answer to an empty source; so the logits at each position depend only on the
tokens up to it. Each architecture defines how it reads a source and writes an answer.
"""

from collections.abc import Sequence

import torch
from transformers import GenerationConfig, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


def begin_of_answer(text: Sequence[int], separator: Sequence[int]) -> int:
    """The place after the first separator; 0 if there is none."""
    size = len(separator)
    places = (
        at + size for at in range(len(text) - size + 1) if list(text[at : at + size]) == list(separator)
    )
    return next(places, 0)


def rows_of(texts: list[list[int]], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts as rows [N, T] of token ids, padded with zeros, and their mask [N, T]."""
    longest = max(map(len, texts))
    filled = [text + [0] * (longest - len(text)) for text in texts]
    rows = torch.tensor(filled, dtype=torch.long, device=device).view(len(texts), longest)
    lengths = torch.tensor([len(text) for text in texts], device=device)
    return rows, torch.arange(longest, device=device) < lengths[:, None]


def loss_of(logits: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor | None:
    """Mean loss in nats per token of labels [N, T], each from the logits [N, T, V] before it; None without
    labels.
    """
    if labels is None:
        return None
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())


class SourceStream(PreTrainedModel):
    """What these architectures share. config: `separator`, the ids that end a source; `eos_token_id`."""

    def __init__(self, config: PreTrainedConfig):
        super().__init__(config)
        self.generation_config = GenerationConfig(eos_token_id=config.eos_token_id)

    def answer_states(self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """Sources [N, S], their mask [N, S], and beginnings of answers [N, A] -> states [N, A + 1, d] before
        the answer and after each of its tokens. Rows are independent, and states causal in the answer.
        """
        raise NotImplementedError

    def answer_logits(self, sources: torch.Tensor, seen: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """As `answer_states`, but logits [N, A + 1, V]."""
        return self.head(self.answer_states(sources, seen, answers))

    def get_output_embeddings(self) -> torch.nn.Module:
        """The map from states to logits, with one row per token."""
        return self.head

    def forward(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
    ) -> CausalLMOutput:
        """Logits [N, T, V] after each token of input_ids [N, T]; keeps no cache. With output_hidden_states
        the last states [N, T, d] too, with labels [N, T] the loss.
        """
        texts = input_ids.tolist()
        begins = [begin_of_answer(text, self.config.separator) for text in texts]
        sources, seen = rows_of([text[:at] for text, at in zip(texts, begins, strict=True)], input_ids.device)
        answers, _ = rows_of([text[at:] for text, at in zip(texts, begins, strict=True)], input_ids.device)
        states = self.answer_states(sources, seen, answers)
        result = states.new_zeros(*input_ids.shape, states.shape[-1])
        for row, at in enumerate(begins):
            first = 1 if at == 0 else 0  # no token precedes an answer without a source
            result[row, max(at - 1, 0) :] = states[row, first : first + input_ids.shape[1] - max(at - 1, 0)]
        if max(begins) > 1:  # up to its separator, each text is an answer to an empty source
            early = input_ids[:, : max(begins) - 1]
            nothing = input_ids[:, :0]
            before = self.answer_states(nothing, nothing.bool(), early)[:, 1:]
            for row, at in enumerate(begins):
                result[row, : max(at - 1, 0)] = before[row, : max(at - 1, 0)]
        hidden = (result,) if output_hidden_states else None
        logits = self.head(result)
        return CausalLMOutput(loss=loss_of(logits, labels), logits=logits, hidden_states=hidden)
