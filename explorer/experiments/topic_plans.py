"""Do topic tags steer the text?

Two models were trained with a topic in front of each sentence: llama-tiny-summaries on summaries of fact
sheets, llama-tiny-forms on stories. The next sentence, after a sheet or a story's first sentence, is forced
under each topic in turn, and its words show which topic it has (by the table of words that labelled the
training texts), compared with what the model writes by itself at the same position. Then whole texts: the F1
between their topics and those of the sheet's own summary, or of the rest of the story, under the model's own
plan, under the plan of that very text, under another text's, and by the same model without topic tokens. The
sheets were not in the training data; the stories were written by llama-tiny.
"""

import json
from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from decoders.datastore import texts
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import folder_of
from decoders.search.planned.discourse_units import f1
from decoders.search.planned.topic_tokens import END_TOPIC, NO_TOPIC, TOPICS, Topics, sentences, topic_tokens
from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import text_of
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.plans_and_summaries import sheets
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.statistics import lead

PAPERS = ()  # none: topics steer, but the model's own plans cover no more than without topics
SHEETS, STORIES = "llama-tiny-summaries", "llama-tiny-forms"
TEXTS = {SHEETS: 60, STORIES: 12}  # kind -> number of texts
BEGINNINGS, TOKENS = 12, 80
SENTENCE = 32  # tokens of a forced sentence
BARE, OWN, GIVEN, OTHER = "without topic tokens", "its own plan", "the text's plan", "another text's plan"


@dataclass(frozen=True)
class Text:
    """The beginning of a text, and the sentences that follow it."""

    begin: str
    rest: list[str]


def training_texts(kind: str, count: int) -> list[Text]:
    """Texts of the kind that a model was trained on."""
    if kind == SHEETS:
        return [Text(sheet.prompt, sheet.summary) for sheet in sheets(count)]
    return begun([s for s in dict.fromkeys(texts("stories")) if len(sentences(s)) > 3][:count])


def begun(stories: list[str]) -> list[Text]:
    """Stories after their first sentences."""
    return [Text(first, rest) for first, *rest in map(sentences, stories)]


def table_of(target: LoadedModel) -> Topics:
    """The words of each topic, stored beside the weights."""
    return Topics(json.loads((folder_of(target.name) / TOPICS).read_text("utf-8")))


def planned(target: LoadedModel, prompt: str, tokens: int, **parameters: Any) -> str:
    """The text of the strategy topic_plan after a prompt, including topic tokens."""
    lane = Lane("topic_plan", target.encode(prompt), {"target": target}, parameters, limits=Limits(tokens))
    return text_of({"target": target}, lane.run().output())


def plain(target: LoadedModel, prompt: str, tokens: int) -> str:
    """The same model's greedy text when it must not use its topics or repeat three tokens."""
    names = ", ".join(f"#{token}" for token in topic_tokens(target).ids.values())
    given = {"suppress_tokens": names, "temperature": 0.0, "no_repeat_ngram_size": 3}
    lane = Lane("sample", target.encode(prompt), {"target": target}, given, limits=Limits(tokens))
    return lane.run().text()


def tagged(text: str, names: list[str]) -> list[str]:
    """The sentences of a text with topic tokens, without the part in front of the first."""
    for name in names:
        text = text.replace(name, "\0")
    return [part for part in text.split("\0")[1:] if part.strip()]


def share(topics: Topics, name: str, sentence: str) -> float:
    """The share of this topic in a sentence's topics."""
    scores = [max(0.0, score) for score in topics.scores(sentence)]
    return scores[int(name[2:-1])] / sum(scores) if sum(scores) else 0.0


def forced(target: LoadedModel, topics: Topics, texts: list[Text]) -> list[list[Cell]]:
    """One row per topic: its share in the sentence by itself, in the forced one, and the difference."""
    names = [name for name in topic_tokens(target).ids if name not in (NO_TOPIC, END_TOPIC)]
    known = sorted(name for name in names if int(name[2:-1]) < len(topics.weights))
    rows = []
    own = [first(target, text, "") for text in progress.each(texts, until=0.1)]
    for name in progress.each(known):
        after = [first(target, text, name) for text in progress.each(texts)]
        free = [share(topics, name, sentence) for sentence in own]
        under = [share(topics, name, sentence) for sentence in after]
        right = fmean([topics.token(sentence) == name for sentence in after])
        gap, error = lead(under, free)
        words = " ".join(list(topics.weights[int(name[2:-1])])[:3])
        rows.append([f"{name.strip('<>')}: {words}", fmean(free), fmean(under), gap, error, right])
    return rows


def first(target: LoadedModel, text: Text, name: str) -> str:
    """The first sentence after the beginning of a text, under a topic, or under the model's own plan."""
    names = list(topic_tokens(target).ids)
    written = planned(target, text.begin, SENTENCE, plan=name, max_sentences=1)
    return (tagged(written, names) or [""])[0]


def covered(target: LoadedModel, topics: Topics, texts: list[Text]) -> dict[str, list[float]]:
    """For each way of writing, the F1 of its topics against those of each text, in the texts' order."""
    names = list(topic_tokens(target).ids)
    plans = [[topics.token(s) for s in text.rest] for text in texts]
    scores: dict[str, list[float]] = {}
    for at, text in progress.each(enumerate(texts)):
        ways = {
            BARE: plain(target, text.begin, TOKENS),
            OWN: planned(target, text.begin, TOKENS),
            GIVEN: planned(target, text.begin, TOKENS, plan=" ".join(plans[at])),
            OTHER: planned(target, text.begin, TOKENS, plan=" ".join(plans[at - 1])),
        }
        for way, written in ways.items():
            made = sentences(written) if way == BARE else tagged(written, names)
            came = Counter({topics.token(s) for s in made[: len(plans[at])]})
            scores.setdefault(way, []).append(f1(came, Counter(set(plans[at]))))
    return scores


def steered(target: LoadedModel, kind: str) -> tuple[list[list[Cell]], list[str]]:
    """One row per topic and one per way to write whole texts, and their sentences, for one model."""
    topics, scored = table_of(target), training_texts(kind, TEXTS[kind])
    name = "Sheets" if kind == SHEETS else "Stories"
    with progress.part(0.5):
        rows = forced(target, topics, scored[:BEGINNINGS])
    scores = covered(target, topics, scored)
    says = [
        f"{name}: forcing a topic changes its share of the sentence by "
        f"{fmean([row[3] for row in rows]):+.2f}, on average over {len(rows)} topics; the words "
        f"name the forced topic in {fmean([row[5] for row in rows]):.0%} of the cases. In "
        f"{sum(r[3] > 2 * r[4] for r in rows)} of {len(rows)} topics the gain is above two standard errors."
    ]
    base = scores[BARE]
    for way, values in scores.items():
        gap, error = lead(values, base)
        rows.append([f"F1, {way}", fmean(base), fmean(values), gap, error, None])
        if way != BARE:
            says.append(
                f"{name}, {way}: F1 {fmean(values):.2f} with their topics, {BARE} {fmean(base):.2f}; ahead "
                f"by {gap:.3f} ± {error:.3f} over {len(scored)} texts."
            )
    return [[f"{name}, {row[0]}", *row[1:]] for row in rows], says


def run(models: Models) -> Result:
    """The rows of both models, or of the target alone if it has topics."""
    target = models["target"]
    kinds = {SHEETS if target.name == SHEETS else STORIES: target}
    if topic_tokens(target) is None:
        kinds = {kind: load(kind, str(target.model.device)) for kind in TEXTS}
    results = [steered(model, kind) for kind, model in progress.each(kinds.items())]
    rows, says = ([one for part in parts for one in part] for parts in zip(*results, strict=True))
    columns = ["topic, or way", "by itself", "under it", "gain", "± error", "named"]
    return Result(columns, rows, [one.replace(" -", " −") for one in says])


def named_shares(answer: dict) -> dict[str, list[float]]:
    """Kind of text -> for each topic, how often the sentence under its tag is on it."""
    named: dict[str, list[float]] = {}
    for row in rows_of(answer):
        if row["named"] is not None:
            named.setdefault(row["topic, or way"].partition(",")[0], []).append(row["named"])
    return named


def finding(answer: dict) -> str:
    """How often the sentence under a tag is on its topic, for each kind of text."""
    named = named_shares(answer)
    texts = {"Sheets": "summaries", "Stories": "stories"}
    shares = " and ".join(f"{percent(fmean(some))} of the {texts[kind]}" for kind, some in named.items())
    return f"A sentence that is written under a topic tag is on that topic in {shares}."


def stands(answer: dict) -> Basis:
    """Beginnings under every topic."""
    named = named_shares(answer)
    sheets, stories = (fmean(named[kind]) for kind in ("Sheets", "Stories"))
    many = [len(named[kind]) * BEGINNINGS for kind in ("Sheets", "Stories")]
    compared = by_shares("on topic, summaries against stories", sheets, stories, *many)
    return Basis({"forced sentences of each kind": many[0]}, compared=[compared])
