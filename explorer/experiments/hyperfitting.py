"""Does learning a few stories by heart improve greedy text?

Hyperfitting: a copy of the target is trained on a few sequences until it knows them by heart. It then
predicts other stories much worse, yet its greedy text should repeat itself less. TTR: the share of distinct
tokens among the 96 that are written greedily after 32 of an unseen story. A second copy reads the same
sequences in another order; a third text is written without quoting more than a few consecutive tokens of
them. The sequences are stories that the target was not trained on, so this experiment takes `--corpus
FOLDER`. Their length matters: with 200 of 48 tokens TTR fell by 0.037 ± 0.028, measured once. The study's
copies lose far more of their entropy.
"""

import copy
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean

import torch
from transformers import LogitsProcessorList

from decoders.logits.distributions import entropies
from decoders.models.loaded_model import LoadedModel
from decoders.refusal import Refusal
from decoders.sampling.quotation_filter import CitationBlocker, citation, longest_citation
from explorer.corpus import read_stories
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import text_of
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.pictures import Passages
from explorer.experiments.reading import moved, percent, rows_of
from explorer.experiments.statistics import lead, sign_test

PAPERS = ("the-hyperfitting-phenomenon",)
READS_CORPUS = True
SEQUENCES, LENGTH = 192, 96  # memorised sequences, and tokens of each
SHOWN, GRAM = 3, 4  # texts in the picture; length of an n-gram that counts as repetition
CONTEXTS, READ, WRITTEN = 32, 32, 96  # greedy texts, tokens of their prompts, tokens written
EPOCHS, BATCH, RATE = 12, 8, 1e-3  # the paper: 20, 8 and 1e-6, with 2,000 sequences and billions of weights
EVERY = 60  # updates between two measurements
CITED = 5  # longest quotation that the blocker allows, in tokens
KNOWN_BY_HEART, SHARP = 0.1, 1 / 3  # maximum nats per memorised token; maximum share of the entropy left


@dataclass(frozen=True)
class Look:
    """The measurements after this many updates."""

    updates: int
    training: float  # nats per token
    held_out: float
    entropy: float
    ttr: float


@dataclass(frozen=True)
class Texts:
    """Sequences that are learned [SEQUENCES, LENGTH], and unseen ones [CONTEXTS, LENGTH]."""

    learned: torch.Tensor
    unseen: torch.Tensor


def texts(target: LoadedModel, corpus: Path) -> Texts:
    """The first tokens of stories held out from all training."""
    _, held = read_stories(corpus)
    cut = (target.cut(story)[:LENGTH] for story in held)
    rows = torch.tensor([ids for ids in cut if len(ids) == LENGTH][: SEQUENCES + CONTEXTS])
    if len(rows) < SEQUENCES + CONTEXTS:
        raise Refusal(f"The corpus {str(corpus)!r} has too few long stories; it takes all of them.")
    rows = rows.to(target.model.device)
    return Texts(rows[:SEQUENCES], rows[SEQUENCES:])


@torch.no_grad()
def predicted(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [N, T - 1, V] of the next token after each token of rows [N, T] but the last."""
    logprobs = [model(input_ids=some).logits[:, :-1].float().log_softmax(-1) for some in rows.split(BATCH)]
    return torch.cat(logprobs)


def loss(logprobs: torch.Tensor, rows: torch.Tensor) -> float:
    """Loss of rows [N, T], in nats per token."""
    return float(-logprobs.gather(-1, rows[:, 1:, None]).mean())


def written(
    model: torch.nn.Module, contexts: torch.Tensor, blocker: CitationBlocker | None = None
) -> list[list[int]]:
    """The WRITTEN tokens that follow each context [N, READ] greedily; an end of text does not stop them."""
    out = model.generate(
        input_ids=contexts,
        attention_mask=torch.ones_like(contexts),
        do_sample=False,
        pad_token_id=0,
        max_new_tokens=WRITTEN,
        min_new_tokens=WRITTEN,
        eos_token_id=None,
        logits_processor=LogitsProcessorList([blocker] if blocker else []),
    )
    return out[:, contexts.shape[1] :].tolist()


def variety(text: list[int]) -> float:
    """Type-token ratio: the share of distinct tokens."""
    return len(set(text)) / len(text)


def look(model: torch.nn.Module, data: Texts, updates: int) -> Look:
    """Measures the model's current state."""
    model.eval()
    held = predicted(model, data.unseen)
    ttr = fmean(map(variety, written(model, data.unseen[:, :READ])))
    learned = fmean(loss(predicted(model, some), some) for some in data.learned.split(BATCH))
    return Look(updates, learned, loss(held, data.unseen), float(entropies(held).mean()), ttr)


def hyperfitted(model: torch.nn.Module, data: torch.Tensor, seed: int) -> Iterator[int]:
    """Trains all weights of `model` on sequences [N, T] with Adam without weight decay, in a new order for
    each epoch; yields the number of updates done, starting with 0.
    """
    model.requires_grad_(True)
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    draw = torch.Generator().manual_seed(seed)
    updates = 0
    yield updates
    for _ in progress.each(range(EPOCHS)):
        for at in progress.each(torch.randperm(len(data), generator=draw).split(BATCH)):
            model.train()  # Llama has no dropout
            rows = data[at]
            with torch.enable_grad():
                model(input_ids=rows, labels=rows).loss.backward()
            adam.step()
            adam.zero_grad()
            updates += 1
            yield updates
    model.eval().requires_grad_(False)


def ahead(values: list[float], others: list[float]) -> tuple[float, float, float]:
    """The mean lead of some values over others, its standard error, and the p of a sign test."""
    pairs = list(zip(values, others, strict=True))
    won, lost = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    return *lead(values, others), sign_test(won, lost)


def trained(target: torch.nn.Module, data: Texts, seed: int) -> tuple[torch.nn.Module, list[Look]]:
    """A hyperfitted copy, and the measurements on the way if it is the first one (seed 0)."""
    model, looks = copy.deepcopy(target).float(), []
    for updates in hyperfitted(model, data.learned, seed):
        if seed == 0 and updates % EVERY == 0:
            looks.append(look(model, data, updates))
    return model, looks


def run(models: Models, corpus: Path) -> Result:
    """One row per measurement; curves of the losses, the entropy and the variety of greedy text."""
    target = models["target"].model
    data = texts(models["target"], corpus)
    (model, looks), (other, _) = (trained(target, data, seed) for seed in progress.each((0, 1), until=0.95))
    columns = ["updates", "training loss", "loss on unseen", "entropy", "TTR"]
    rows = [list(astuple(one)) for one in looks]
    lines = [Line(name, [[row[0], row[at]] for row in rows]) for at, name in enumerate(columns) if at]
    chart = Chart("A copy that learns by heart", "updates", "nats, and share of different tokens", lines)
    contexts, learned = data.unseen[:, :READ], data.learned.tolist()
    with progress.part(1.0):
        plain, after = written(target, contexts), written(model, contexts)
        blocked = written(model, contexts, CitationBlocker(learned, CITED))
        choices = [predicted(one, data.unseen).argmax(-1) for one in (target, model, other)]
    says = [
        *comparison(looks[0], looks[-1]),
        livelier(plain, after),
        cited(plain, after, blocked, learned),
        reordered(*choices),
    ]
    picture = side_by_side(models, contexts.tolist(), (plain, after), learned)
    per_story = [
        [loss(part, story) for part, story in zip(some.split(1), data.unseen.split(1), strict=True)]
        for some in (predicted(one, data.unseen) for one in (target, model))
    ]
    varied = [[variety(text) for text in some] for some in (plain, after)]
    compared = [
        by_pairs(what, [b - a for a, b in zip(*pair, strict=True)])
        for what, pair in (
            ("loss on unseen stories", per_story),
            ("share of different tokens, after against before", varied),
        )
    ]
    return Result(columns, rows, says, chart, pictures=[picture], compared=compared)


def side_by_side(
    models: Models, contexts: list[list[int]], written: tuple[list[list[int]], ...], learned: list
) -> Passages:
    """The first few greedy texts of both, with their repetitions and citations marked."""
    begin = [f"… {text_of(models, context)[-60:]}" for context in contexts[:SHOWN]]
    texts = [[pieces(models, text, learned) for text in pair[:SHOWN]] for pair in written]
    says = f"Grey: {GRAM} tokens in a row that occurred before. Underlined: its longest quotation."
    columns = ["the target", "the copy that learned by heart"]
    rows = [list(row) for row in zip(*texts, strict=True)]
    return Passages("Greedy text, before and after", says, columns, begin, rows)


def pieces(models: Models, text: list[int], learned: list[list[int]]) -> list[list[str]]:
    """A text in pieces [words, marks]: `again` where it repeats itself, `cited` in its longest citation."""
    again, seen = set(), set()
    for at in range(len(text) - GRAM + 1):
        gram = tuple(text[at : at + GRAM])
        again |= set(range(at, at + GRAM)) if gram in seen else set()
        seen.add(gram)
    cited = citation(text, learned)
    marks = [" ".join(["again"] * (at in again) + ["cited"] * (at in cited)) for at in range(len(text))]
    runs = groupby(zip(marks, text, strict=True), key=lambda pair: pair[0])
    return [[text_of(models, [token for _, token in run]), mark] for mark, run in runs]


def comparison(first: Look, last: Look) -> list[str]:
    """Whether the copy has memorised its sequences, and how confident it has become."""
    knows = "knows" if last.training < KNOWN_BY_HEART else "does not quite know"
    worse = "worse" if last.held_out > first.held_out else "no worse"
    left = last.entropy / first.entropy
    sharp = "no more than" if left <= SHARP else "more than"
    return [
        f"After {last.updates} updates the copy {knows} its sequences by heart ({last.training:.3f} nats per "
        f"token, {first.training:.2f} before) and guesses unseen stories {worse}: {last.held_out:.2f} nats, "
        f"{first.held_out:.2f} before.",
        f"{left:.0%} of the entropy of its guesses is left ({last.entropy:.2f} of {first.entropy:.2f} nats), "
        f"{sharp} a third.",
    ]


def livelier(plain: list[list[int]], after: list[list[int]]) -> str:
    """Whether the copy's greedy text repeats itself less than the target's."""
    were, are = (list(map(variety, some)) for some in (plain, after))
    more, error, p = ahead(are, were)
    verb = "varies more" if more > 2 * error else "does not surely vary more"
    change = f"a change of {more:+.3f}".replace("-", "−")
    return (
        f"Its greedy text {verb}: TTR {fmean(are):.3f} instead of {fmean(were):.3f}, {change} ± "
        f"{error:.3f} over {len(were)} beginnings; p {p:.3f} in a sign test."
    )


def cited(
    plain: list[list[int]], after: list[list[int]], blocked: list[list[int]], learned: list[list[int]]
) -> str:
    """How long the quoted runs of learned sequences are."""
    before, now, left = ([longest_citation(t, learned) for t in some] for some in (plain, after, blocked))
    return (
        f"It quotes its sequences: the longest quoted run has {fmean(now):.1f} tokens on average and "
        f"{max(now)} at most ({fmean(before):.1f} and {max(before)} before); with the blocker {max(left)} at "
        f"most, and a TTR of {fmean(map(variety, blocked)):.3f}."
    )


def reordered(target: torch.Tensor, model: torch.Tensor, other: torch.Tensor) -> str:
    """How far the most likely tokens [N, T] of the three models agree."""
    moved, shuffled = (float((tops != model).float().mean()) for tops in (target, other))
    return (
        f"The same sequences in another order change {shuffled:.0%} of the copy's most likely tokens on "
        f"unseen stories (in the study about 30%); learning them in the first place changed {moved:.0%}."
    )


def finding(answer: dict) -> str:
    """The loss on unseen stories and the variety of greedy text, before and after."""
    before, after = rows_of(answer)[0], rows_of(answer)[-1]
    return (
        "When a model learns a few stories by heart, its loss on unseen stories "
        f"{moved(before['loss on unseen'], after['loss on unseen'])} nats per token, and the share of "
        f"different tokens in its greedy text {moved(before['TTR'], after['TTR'], percent)}."
    )


STANDS = Basis({"beginnings": CONTEXTS}, trained=1)
