"""llama-tiny-sorted: three nested drafts for llama-tiny, its first layer, its first two and all three, each
through the same last norm and output matrix (S2D, 2024).

It starts from the distilled draft, whose embeddings it keeps, and ships only the difference, in eight bits
per number.
"""

from argparse import Namespace
from collections.abc import Callable

import numpy as np
import torch
from transformers import LlamaForCausalLM

from decoders.models import rounded_change
from decoders.models.catalog import TARGET
from decoders.speculative.divergences import forward_kl
from explorer.corpus import ROW, prepare
from explorer.training import check, loop
from explorer.training.loop import compiled, deepened, trained
from explorer.training.own_text import at_all_temperatures
from explorer.training.stages import finish, stage

NAME, BEGUN_FROM = "llama-tiny-sorted", "llama-tiny-draft-distilled"
EXITS = (1, 2, 3)
BUDGET, OWN, COUNTED = 0.1, 0.015, 4  # million tokens; those of the target's own; one place in four counts


def sorted_loss(
    draft: LlamaForCausalLM, target: LlamaForCausalLM, own: np.ndarray, exits: tuple[int, ...]
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The mean over `exits` of KL(target || draft after this many layers), in nats per token, half on
    the rows that are fed, half on the target's own text; at one place in COUNTED, drawn at random.

    The paper takes the cross-entropy of a corpus; its authors' later trainer takes soft labels, as we do.
    """
    forward, teach = compiled(draft.model), compiled(target.model.eval())

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(int(rows.sum()))
        pick = torch.randint(len(own), (rows.numel() // ROW,), generator=generator)
        written = torch.from_numpy(own[pick.numpy()].astype(np.int64)).to(rows.device).view(rows.shape)
        both = torch.cat([rows, written])
        counted = (torch.rand(both.shape, generator=generator) < 1 / COUNTED).to(rows.device)
        with torch.no_grad():
            wanted = target.lm_head(teach(input_ids=both).last_hidden_state[counted]).float()
        out = forward(input_ids=both, output_hidden_states=True)
        last = len(draft.model.layers)  # of whose states the norm is a part already
        states = [
            out.last_hidden_state if e == last else draft.model.norm(out.hidden_states[e]) for e in exits
        ]
        each = [forward_kl(wanted, draft.lm_head(state[counted]).float()).mean() for state in states]
        return sum(each) / len(each)

    return loss


def main(args: Namespace) -> None:
    """Trains and ships it, from the distilled draft and a third layer that adds nothing at first."""
    texts, target = prepare(args.corpus, args.work), trained(TARGET)
    draft = deepened(trained(BEGUN_FROM), EXITS[-1])
    draft.get_input_embeddings().requires_grad_(False)
    budget = args.million_tokens or BUDGET
    own = at_all_temperatures(target, texts, args.work, OWN * 1e6 * budget / BUDGET)
    loss = sorted_loss(draft, target, own, EXITS)
    curve = stage(draft, texts, args, NAME, budget, batch=8, tasks=0.25, loss=loss)
    finish(draft, texts, NAME, curve, distilled_from=TARGET, exits=list(EXITS))
    rounded_change.write(loop.MODELS / NAME, BEGUN_FROM)
    check.write(loop.MODELS / NAME)
