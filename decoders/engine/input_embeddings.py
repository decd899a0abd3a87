"""Input embeddings that mix several tokens: a position may be read as a superposition."""

from collections.abc import Sequence

import torch

Mixed = dict[int, torch.Tensor]  # node -> embedding [d] that is read in place of its token's


@torch.inference_mode()
def input_embeddings(model: torch.nn.Module, tokens: Sequence[int]) -> torch.Tensor:
    """The input embeddings [N, d] of tokens."""
    return model.get_input_embeddings()(torch.tensor(tokens, device=model.device))


def read_at(model: torch.nn.Module, mixed: Mixed, nodes: list[int], tokens: list[int]) -> torch.Tensor | None:
    """The input embeddings [N, d] at `nodes`; None if all of them are those of their own tokens. tokens: the
    token of every node in the tree.
    """
    if mixed.keys().isdisjoint(nodes):
        return None
    read = input_embeddings(model, [tokens[node] for node in nodes])
    return torch.stack([mixed.get(node, own) for node, own in zip(nodes, read, strict=True)])


def reads(model: torch.nn.Module, padded: torch.Tensor, mixed: Sequence[Mixed]) -> dict[str, torch.Tensor]:
    """A model's keyword arguments for texts [B, T]: their tokens, or embeddings if `mixed` replaces some (for
    each text, place -> embedding).
    """
    if not any(mixed):
        return {"input_ids": padded}
    read = model.get_input_embeddings()(padded).clone()
    for row, places in enumerate(mixed):
        for place, embedding in places.items():
            read[row, place] = embedding
    return {"inputs_embeds": read}
