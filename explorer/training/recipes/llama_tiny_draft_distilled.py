"""llama-tiny-draft-distilled: the plain draft, trained further to match llama-tiny's distributions, on texts
that the target wrote itself and on stories and tasks (DistillSpec, 2023).

`--divergence` chooses the divergence to minimise, and `--on-policy` uses the draft's own texts instead of the
target's (DistillSpec, sections 3 and 4); the shipped model uses the forward KL and the target's texts.
"""

from argparse import Namespace
from collections.abc import Callable

import numpy as np
import torch
from transformers import LlamaForCausalLM

from decoders.models.catalog import TARGET
from decoders.speculative.divergences import Divergence, divergence_named, forward_kl
from explorer.corpus import ROW, prepare
from explorer.training.loop import compiled, trained
from explorer.training.modules import continued
from explorer.training.own_text import PROMPT, at_all_temperatures
from explorer.training.stages import finish, stage

OWN_SHARE = 0.1  # tokens written by the target at each temperature, for each token of the budget


def distillation(
    draft: LlamaForCausalLM,
    target: LlamaForCausalLM,
    own: np.ndarray,
    divergence: Divergence = forward_kl,
    on_policy: bool = False,
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The divergence of the draft from the target in nats per token, half on the rows that are fed, half on
    the target's own text, of which two rows fill one of full context length; with `on_policy` on the current
    draft's own continuations of the beginnings of that text.
    """
    forward, teach = compiled(draft), compiled(target.eval())

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(int(rows.sum()))
        pick = torch.randint(len(own), (rows.numel() // ROW,), generator=generator)
        written = torch.from_numpy(own[pick.numpy()].astype(np.int64)).to(rows.device)
        if on_policy:
            written = continued(draft, written[:, :PROMPT], ROW)
        both = torch.cat([rows, written.view(rows.shape)])
        with torch.no_grad():
            wanted = teach(input_ids=both).logits.float()
        return divergence(wanted, forward(input_ids=both).logits.float()).mean()

    return loss


def main(args: Namespace) -> None:
    """Trains and ships it. `args.divergence` names one of DIVERGENCES; `args.on_policy` chooses the draft's
    own text.
    """
    divergence = divergence_named(getattr(args, "divergence", None) or "forward KL")
    texts = prepare(args.corpus, args.work)
    target = trained(TARGET)
    draft = trained("llama-tiny-draft")
    budget = args.million_tokens or 6
    own = at_all_temperatures(target, texts, args.work, OWN_SHARE * budget * 1e6)
    loss = distillation(draft, target, own, divergence, getattr(args, "on_policy", False))
    name = "llama-tiny-draft-distilled"
    curve = stage(draft, texts, args, name, budget, batch=8, tasks=0.25, loss=loss)
    finish(draft, texts, name, curve, distilled_from=TARGET)
