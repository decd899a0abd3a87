"""The states of a code's leaves: each leaf is encoded separately with the white space before it, so that no
token belongs to two, as the published AST-Probe does; its state is the mean over its own tokens.
"""

from typing import Any

import torch

from decoders.lenses.python_trees import Span


def leaf_tokens(model: Any, code: str, spans: list[Span]) -> tuple[list[int], list[list[int]]]:
    """(tokens of the code up to its last leaf; for each leaf the places of its tokens). What stands between
    two leaves is read, and belongs to none.
    """
    tokens, groups, read = [], [], 0
    for begin, end in spans:
        own, at = [], 0
        blank = len(code[read:begin].encode())
        for token in model.cut(code[read:end]):
            stop = at + len(model.bytes_of(token))
            if stop > blank:
                own.append(len(tokens))
            tokens.append(token)
            at = stop
        groups.append(own or [len(tokens) - 1])
        read = end
    return tokens, groups


def leaf_means(streams: torch.Tensor, groups: list[list[int]]) -> torch.Tensor:
    """The mean states [..., n, d] of leaves, from those of tokens [..., T, d]."""
    return torch.stack([streams[..., group, :].mean(-2) for group in groups], -2)
