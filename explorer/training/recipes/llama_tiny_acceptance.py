"""llama-tiny-acceptance: a head on the frozen llama-tiny-draft-distilled that predicts which of its tokens
llama-tiny will accept (SpecDec++, 2024), trained on texts that llama-tiny sampled at temperature 1.
"""

from argparse import Namespace
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaForCausalLM

from decoders.heads import Acceptance, Target, take_taps
from decoders.heads.scorers.acceptance import UNASKED
from decoders.models.loaded_model import LoadedModel
from explorer.corpus import VOCABULARY, prepare
from explorer.training import loop
from explorer.training.modules import frozen, parted, ship_scorer, train_scorer, work_of
from explorer.training.own_text import own_text

TARGET, DRAFT, NAME = "llama-tiny", "llama-tiny-draft-distilled", "llama-tiny-acceptance"
MILLION_TOKENS = 0.6
EPOCHS, BATCH = 3, 4
LABELLED = 16  # rows that are labelled at a time, fewer with a larger vocabulary
KEPT = 0.15  # share of the target's own tokens in what the draft reads; all others are the draft's
HELD_OUT = 10  # every 10th row is kept for validation


@torch.no_grad()
def labelled(
    target: LlamaForCausalLM, draft: LlamaForCausalLM, texts: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and truths, both [R, T], of texts [R, T] by the target. At each position n the draft samples Y
    from its q after the text; the truth is min(1, p(Y) / q(Y)). The row has Y there or, with probability
    KEPT, the text's own token, which has no truth.
    """
    generator = torch.Generator().manual_seed(0)
    rows, truths = [], []
    for some in texts.split(max(1, LABELLED * VOCABULARY // max(VOCABULARY, target.config.vocab_size))):
        ids = some.to(target.device)
        p, q = (model(input_ids=ids).logits.float().softmax(-1) for model in (target, draft))
        drawn = torch.multinomial(q[:, :-1].flatten(0, 1).cpu(), 1, generator=generator)  # [B (T - 1), 1]
        drawn = drawn.view(len(some), -1, 1)
        ratio = (p.cpu()[:, :-1].gather(-1, drawn) / q.cpu()[:, :-1].gather(-1, drawn))[..., 0]
        mixed, truth = some.clone(), torch.full(some.shape, UNASKED)
        own = torch.rand(ratio.shape, generator=generator) < KEPT
        mixed[:, 1:] = torch.where(own, some[:, 1:], drawn[..., 0])
        truth[:, 1:] = torch.where(own, UNASKED, ratio.clamp(max=1.0))
        rows.append(mixed)
        truths.append(truth)
        print(f"{sum(map(len, rows))} of {len(texts)} texts labelled", flush=True)
    return torch.cat(rows), torch.cat(truths)


def fit(
    target: LoadedModel, draft: LoadedModel, own: np.ndarray, budget: float, work: Path
) -> tuple[Acceptance, loop.Curve, dict]:
    """The head of a pair, trained along texts [R, T] by the target, its losses, and facts. budget: in
    millions of tokens.
    """
    taken = torch.from_numpy(own[: max(HELD_OUT + 1, int(budget * 1e6 / EPOCHS) // own.shape[1])])
    rows, truth = labelled(target.model, draft.model, taken.long())
    torch.manual_seed(0)
    head = Acceptance(Target.of(draft.model), against=target.name).to(draft.model.device)

    def loss(some: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return head.loss(take_taps(draft.model, some), wanted)

    curve = train_scorer(head, loss, *parted(rows, HELD_OUT, truth), budget, work, BATCH)
    facts = {
        "texts": len(rows),
        "note": f"It reads `{draft.name}` and predicts what `{target.name}` accepts. The loss is "
        "cross-entropy in nats, rejections counted six times; the head's output is corrected for that.",
    }
    return head, curve, facts


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    target, draft = frozen(TARGET), frozen(DRAFT)
    budget = args.million_tokens or MILLION_TOKENS
    own = own_text(target.model, texts, args.work, budget * 1e6 / EPOCHS)
    head, curve, facts = fit(target, draft, own, budget, work_of(args.work, NAME, TARGET, DRAFT))
    ship_scorer(NAME, head, DRAFT, texts.tokenizer, curve, "token", facts, partner=TARGET)
