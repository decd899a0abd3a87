"""Whether llama-tiny-ranker recognises the true continuation in stories that it never saw: a piece's own
continuation against other pieces of the same story, and against text sampled from the target; compared with
the target's own likelihood.
"""

import random
from pathlib import Path

import torch

from decoders.heads import Ranker
from decoders.models.loaded_model import LoadedModel
from explorer.corpus import read_stories
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with
from explorer.training.recipes.llama_tiny_ranker import TRIPLES, batches, cut, padded, summaries

CUTS, FILE = 2, "ranks.json"  # how often each story is cut
IN_BOOK, DRAWN = "another part of the same story", "a text that the target drew"
Scores = tuple[
    torch.Tensor, torch.Tensor
]  # of each prefix with its story's continuations, with its drawn text


def ranked(head: Ranker, model: LoadedModel, prefixes: list, written: list, drawn: list) -> Scores:
    """The ranker's dot products [D, 3, 3] (each prefix of a story with each continuation) and [D, 3]."""
    with torch.no_grad():
        p = head.pre(summaries(model.model, prefixes)).unflatten(0, (-1, TRIPLES))
        own, other = (
            head.suf(summaries(model.model, texts)).unflatten(0, (-1, TRIPLES)) for texts in (written, drawn)
        )
    return torch.einsum("dpw,dcw->dpc", p, own), (p * other).sum(-1)


def likely(model: LoadedModel, prefixes: list, written: list, drawn: list) -> Scores:
    """The same scores by the target's mean log-probability of the continuation after the prefix."""
    stories = range(0, len(prefixes), TRIPLES)
    pairs = [
        (prefixes[d + p], written[d + c]) for d in stories for p in range(TRIPLES) for c in range(TRIPLES)
    ]
    own, other = (mean_logprobs(model, some) for some in (pairs, list(zip(prefixes, drawn, strict=True))))
    return own.view(-1, TRIPLES, TRIPLES), other.view(-1, TRIPLES)


@torch.no_grad()
def mean_logprobs(model: LoadedModel, pairs: list[tuple[list[int], list[int]]]) -> torch.Tensor:
    """Mean log-probability of each continuation after its prefix [N]."""
    result = torch.empty(len(pairs))
    texts = [before + behind for before, behind in pairs]
    for some in batches(texts):
        rows, ends = padded([texts[i] for i in some], model.model.device)
        after = model.model(input_ids=rows).logits[:, :-1].float().log_softmax(-1)
        logprobs = after.gather(-1, rows[:, 1:, None])[..., 0]
        starts = torch.tensor([len(pairs[i][0]) for i in some], device=rows.device)
        places = torch.arange(1, rows.shape[1], device=rows.device)
        counted = (places >= starts[:, None]) & (places < ends[:, None])
        result[some] = ((logprobs * counted).sum(1) / counted.sum(1)).cpu()
    return result


def right(scores: Scores) -> dict[str, float]:
    """How often a prefix's own continuation has the higher score. The piece from which the prefix was cut
    does not compete, nor does anything before the story's second piece.
    """
    own, other = scores
    truth = own.diagonal(dim1=1, dim2=2)
    rivals = [(p, c) for p in range(TRIPLES) for c in range(TRIPLES) if c not in (p - 1, p)]
    in_book = torch.stack([truth[:, p] > own[:, p, c] for p, c in rivals])
    return {IN_BOOK: in_book.float().mean().item(), DRAWN: (truth > other).float().mean().item()}


def measure(folder: Path, corpus: Path) -> Findings:
    """Rival -> by what, the share of pairs that are ranked right; as a fact the number of prefixes."""
    model = model_with(folder)
    head = model.heads["ranker"]
    stories = read_stories(corpus)[1] * CUTS
    prefixes, written, drawn = cut(model.model, model.tokenizer, stories, random.Random("held out"))
    result = {
        "ranker": right(ranked(head, model, prefixes, written, drawn)),
        "log p": right(likely(model, prefixes, written, drawn)),
    }
    rows = {rival: {by: shares[rival] for by, shares in result.items()} for rival in (IN_BOOK, DRAWN)}
    print(rows, flush=True)
    return Findings({FILE: rows}, {"ranked": len(prefixes)})
