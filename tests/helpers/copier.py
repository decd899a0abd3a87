"""A tiny Llama that has learned to repeat a few letters: for tests that need a known dependence.

Trained in three seconds of computing, once per session.
"""

from functools import cache

import torch

from decoders.models.loaded_model import LoadedModel
from explorer.experiments.models.small import fit, next_loss
from explorer.experiments.models.small_llama import small_llama

LETTERS, LENGTH = 10, 3  # letters to draw from; of a text
STEPS = 250
SAYS = LETTERS  # the token "=" after the letters, where the copy begins


def strings(count: int, seed: int) -> torch.Tensor:
    """Texts [count, 2 LENGTH + 1]: random letters, "=", the same letters again."""
    letters = torch.randint(LETTERS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    return torch.cat([letters, torch.full((count, 1), SAYS), letters], dim=1)


@cache
def copier() -> LoadedModel:
    """The model; the loss is taken at every position, so that it learns that the first letters are random."""
    model = small_llama(LETTERS + 1, 32, 2, 4)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        return next_loss(model(input_ids=rows).logits, rows)

    fit(model.parameters(), loss, strings(4000, 0), steps=STEPS, batch=32, rate=1e-2)
    return LoadedModel("copier", model.eval().requires_grad_(False), None)
