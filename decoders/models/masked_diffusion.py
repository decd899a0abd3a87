"""A masked-diffusion model as one that guesses several tokens of a text at once: masks behind the text, one
forward that looks in both directions, and what it would put in place of each.

Knows token ids and tensors; which tokens become text is not its to say.
"""

import json

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from decoders.models.catalog import SHIPPED, kind


class Masked:
    """A loaded model whose token number `mask` stands for a place that is not written yet."""

    def __init__(self, model: torch.nn.Module, mask: int, name: str = ""):
        self.model, self.mask, self.name = model, mask, name
        self.context = model.config.max_position_embeddings

    @torch.inference_mode()
    def guess(self, tokens: list[int], count: int) -> torch.Tensor:
        """Logits [count, V] for the `count` tokens behind a text; V leaves out the mask and all above it.

        Of a text that is too long only the end is read.
        """
        row = [*tokens[max(0, len(tokens) + count - self.context) :], *[self.mask] * count]
        ids = torch.tensor([row], device=self.model.device)
        everywhere = torch.zeros(1, 1, len(row), len(row), dtype=self.model.dtype, device=ids.device)
        return self.model(input_ids=ids, attention_mask=everywhere).logits[0, -count:, : self.mask].float()


def shipped_for(target) -> Masked | None:
    """The masked model that comes with the project and has the same tokens as a loaded model, and the mask
    behind them; None if there is none.
    """
    vocabulary = target.tokenizer.get_vocab()
    for path in sorted(SHIPPED.glob("*/config.json")):
        config, folder = json.loads(path.read_text()), path.parent
        if kind(config) != "diffusion" or config["mask_token_id"] != len(vocabulary):
            continue
        own = PreTrainedTokenizerFast.from_pretrained(folder).get_vocab()
        if {token: at for token, at in own.items() if at != config["mask_token_id"]} == vocabulary:
            like = target.engine
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=like.dtype).to(like.device).eval()
            return Masked(model.requires_grad_(False), config["mask_token_id"], folder.name)
    return None
