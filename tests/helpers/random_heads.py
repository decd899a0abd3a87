"""Draft heads with random weights on a tiny target."""

import torch

from decoders.heads import DraftModule, Target
from decoders.models.head_kinds import KINDS

# Kind -> class of the heads that draft.
DRAFTERS = {kind: one.head for kind, one in KINDS.items() if issubclass(one.head, DraftModule)}

MARK = 251  # a token that tests of heads do not give
SETTINGS = {"kangaroo": {"exit": 1}, "m2r2": {"exit": 1}, "fragments": {"mark": MARK}}


def random_head(kind: str, model: torch.nn.Module) -> DraftModule:
    """A module of this kind with random weights everywhere: nothing is silent."""
    torch.manual_seed(1)
    module = DRAFTERS[kind](Target.of(model), **SETTINGS.get(kind, {}))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return module.eval().requires_grad_(False)
