"""llama-tiny-ranker: two small networks on the frozen llama-tiny that score how well a continuation fits the
text before it (RankGen, 2022), trained on stories cut into pieces and on the target's own continuations.
"""

import random
import re
from argparse import Namespace
from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.heads import Ranker, Target, take_taps
from decoders.heads.scorers.ranker import summary
from explorer.corpus import read_stories
from explorer.training.modules import frozen, parted, ship_scorer, train_scorer, work_of

TARGET, NAME = "llama-tiny", "llama-tiny-ranker"
MILLION_TOKENS = 3.2  # of continuations; a token counts each time that it is looked at
DOCUMENTS, TRIPLES = 1100, 3  # stories, and pairs of neighbouring pieces of each
MIN_PIECE, PREFIX, WRITTEN = 10, 96, 48  # tokens of a piece at least; of a prefix, of a continuation at most
STORY = 480  # tokens of the longest story
SENTENCE = re.compile(r"(?<=[.!?\"])(?= [A-Z\"])")
CHUNK, WRITERS = 64, 96  # documents made at a time; texts read or written at a time
BATCH, RATES, HELD_OUT = 16, (2e-3, 1e-3), 8  # BATCH: documents
PAD = 1
Triples = tuple[list[list[int]], list[list[int]], list[list[int]]]  # prefixes, continuations, drawn ones


def pieces(tokenizer: PreTrainedTokenizerFast, story: str, rng: random.Random) -> list[list[int]] | None:
    """A story cut into four pieces between sentences, at random; None if it is too short or too long."""
    sentences = tokenizer(SENTENCE.split(story))["input_ids"]
    if len(sentences) <= TRIPLES or sum(map(len, sentences)) > STORY:
        return None
    cuts = sorted(rng.sample(range(1, len(sentences)), TRIPLES))
    result = [sum(sentences[a:b], []) for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    return result if min(map(len, result)) >= MIN_PIECE else None


def cut(
    target: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, stories: list[str], rng: random.Random
) -> Triples:
    """Three triples of each story that can be cut: a piece; the beginning of the next one, of random length;
    and the target's own continuation of the same length, sampled with top-p 0.9.
    """
    prefixes, written = [], []
    for parts in filter(None, (pieces(tokenizer, story, rng) for story in stories)):
        prefixes += [piece[-PREFIX:] for piece in parts[:-1]]
        written += [piece[: rng.randint(MIN_PIECE, WRITTEN)] for piece in parts[1:]]
    return prefixes, written, drawn(target, prefixes, written)


@torch.no_grad()
def drawn(target: LlamaForCausalLM, prefixes: list[list[int]], like: list[list[int]]) -> list[list[int]]:
    """The target's sampled continuation of each prefix, as long as `like`, or shorter if the text ends."""
    by_length: dict[int, list[int]] = {}
    for some in batches(prefixes):
        ids, ends = padded([prefixes[i][::-1] for i in some], target.device)  # on the left
        ids, mask = ids.flip(1), (ids.flip(1) != PAD).long()
        torch.manual_seed(len(by_length))
        wrote = target.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            top_p=0.9,
            max_new_tokens=WRITTEN,
            min_new_tokens=1,
            suppress_tokens=[PAD],
            pad_token_id=PAD,
        )[:, ids.shape[1] :]
        for i, row in zip(some, wrote.tolist(), strict=True):
            own = [token for token in row if token not in (PAD, target.config.eos_token_id)]
            by_length[i] = own[: len(like[i])]
    return [by_length[i] for i in range(len(prefixes))]


def batches(texts: list[list[int]]) -> list[list[int]]:
    """Indices of texts of similar length, WRITERS at a time."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    return [order[at : at + WRITERS] for at in range(0, len(order), WRITERS)]


def padded(texts: list[list[int]], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts as rows [N, T], padded on the right, and their lengths [N]."""
    ends = torch.tensor([len(text) for text in texts], device=device)
    rows = torch.full((len(texts), int(ends.max())), PAD, device=device)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = torch.tensor(text, device=device)
    return rows, ends


@torch.no_grad()
def summaries(target: LlamaForCausalLM, texts: list[list[int]]) -> torch.Tensor:
    """The ranker's inputs for texts [N, 2d], each text read separately."""
    result = torch.empty(len(texts), 2 * target.config.hidden_size)
    for some in batches(texts):
        rows, ends = padded([texts[i] for i in some], target.device)
        result[some] = summary(take_taps(target, rows).hidden, ends).cpu()
    return result


def read_triples(
    target: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, stories: list[str], path: Path
) -> tuple[torch.Tensor, torch.Tensor]:
    """(continuations [D, 3, WRITTEN], padded; the ranker's inputs for prefixes, continuations and sampled
    texts [D, 3, 3, 2d]); kept in `path` as they are made.
    """
    kept = torch.load(path, weights_only=True) if path.exists() else {"at": 0, "tokens": [], "read": []}
    while kept["at"] < len(stories) and sum(map(len, kept["tokens"])) < DOCUMENTS:
        some = stories[kept["at"] : kept["at"] + CHUNK]
        prefixes, written, own = cut(target, tokenizer, some, random.Random(f"ranker {kept['at']}"))
        if written:
            rows = [text + [PAD] * (WRITTEN - len(text)) for text in written]
            kept["tokens"].append(torch.tensor(rows, dtype=torch.int16).view(-1, TRIPLES, WRITTEN))
            read = [summaries(target, texts) for texts in (prefixes, written, own)]
            kept["read"].append(torch.stack(read, 1).half().unflatten(0, (-1, TRIPLES)))
        kept["at"] += CHUNK
        torch.save(kept, path)
        print(f"{sum(map(len, kept['tokens']))} documents cut and read", flush=True)
    return torch.cat(kept["tokens"]).long(), torch.cat(kept["read"])


def main(args: Namespace) -> None:
    """Trains and ships it."""
    loaded = frozen(TARGET)
    target, tokenizer = loaded.model, loaded.tokenizer
    stories, _ = read_stories(args.corpus)
    work = work_of(args.work, NAME, TARGET)
    tokens, read = read_triples(target, tokenizer, stories, work / "triples.pt")
    torch.manual_seed(0)
    head = Ranker(Target.of(target)).to(target.device)

    def loss(written: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        prefixes, own, drawn_ = read[some.cpu()].to(written.device).float().flatten(0, 1).unbind(1)
        return head.loss(prefixes, own, drawn_)

    budget = args.million_tokens or MILLION_TOKENS
    curve = train_scorer(head, loss, *parted(tokens, HELD_OUT), budget, work, BATCH, RATES)
    facts = {
        "documents": len(tokens),
        "tokens_of": "of continuations, each several times",
        "note": f"It stands in for RankGen's encoder, which would be too large: two networks with "
        f"one hidden layer read the mean and the last of the states of the frozen `{TARGET}`, one in "
        "prefixes, one in continuations, each text read by itself; the score is the dot product of their "
        "vectors, which are not normalised. Its negatives are other parts of the same story, parts of "
        f"other stories, and what `{TARGET}`, which was not fine-tuned for that, sampled with top-p 0.9. The "
        f"loss is cross-entropy in nats among the {2 * TRIPLES * BATCH} texts of a batch of {BATCH} stories.",
    }
    ship_scorer(NAME, head, TARGET, tokenizer, curve, "prefix", facts)
