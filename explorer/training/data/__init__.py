"""What some models read beside the corpus: forms and fact sheets, and rows of them."""

import torch

Rows = tuple[torch.Tensor, torch.Tensor]  # token ids and labels, both [batch, row]
