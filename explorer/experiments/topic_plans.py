"""Do topics steer the text?

llama-tiny-forms, trained with a topic in front of each sentence, writes on behind beginnings of stories. Its
next sentence is forced under each topic in turn, and its words say which topic it came out with (the table of
words by which the training texts were labelled): forced, against what the model does by itself at the same
place. Then whole stories under a plan: the topics of 24 stories are given to topic plans, and the F1 of the
topics that come out is compared with the model's own plans, with another story's plan, and with the same
model without topic tokens. The stories were written by llama-tiny itself: no reference is of human hand.
"""

import json
import math
from statistics import fmean, stdev

from decoders.lane import Lane, Limits
from decoders.models import LoadedModel, folder_of, load
from decoders.search.topics import END_TOPIC, NO_TOPIC, TOPICS, Topics, sentences, topic_tokens
from decoders.speculative.stores import texts
from explorer.experiments import Cell, Models, Result

PAPERS = ()  # topics do not steer our model, which its study found
MODEL = "llama-tiny-forms"
STORIES, BEGINNINGS, TOKENS = 24, 16, 120
SENTENCE = 32  # tokens of a forced sentence


def with_topics(models: Models) -> LoadedModel:
    """The target if it has topics, else the shipped model that has."""
    target = models["target"]
    return target if topic_tokens(target) else load(MODEL, str(target.model.device))


def table_of(target: LoadedModel) -> Topics:
    """The words of each topic, that lie beside the weights."""
    return Topics(json.loads((folder_of(target.name) / TOPICS).read_text("utf-8")))


def begun(story: str) -> str:
    """The first sentence of a story."""
    return sentences(story)[0]


def told(target: LoadedModel, prompt: str, tokens: int, **parameters) -> str:
    """What a topic plan writes behind a prompt, topic tokens included."""
    lane = Lane("topic_plan", target.encode(prompt), {"target": target}, parameters, limits=Limits(tokens))
    ends = target.eos
    return b"".join(target.bytes_of(t) for t in lane.run().output() if t not in ends).decode(
        "utf-8", "replace"
    )


def plain(target: LoadedModel, prompt: str, tokens: int) -> str:
    """What the same model writes greedily when it must not use its topics, and repeat no three tokens."""
    names = ", ".join(f"#{token}" for token in topic_tokens(target).ids.values())
    given = {"suppress_tokens": names, "temperature": 0.0, "no_repeat_ngram_size": 3}
    lane = Lane("sample", target.encode(prompt), {"target": target}, given, limits=Limits(tokens))
    return lane.run().text()


def tagged(text: str, names: list[str]) -> list[str]:
    """The sentences of a text with topic tokens, the part in front of the first left out."""
    for name in names:
        text = text.replace(name, "\0")
    return [part for part in text.split("\0")[1:] if part.strip()]


def share(topics: Topics, name: str, sentence: str) -> float:
    """How much of a sentence's topics is this one."""
    scores = [max(0.0, score) for score in topics.scores(sentence)]
    return scores[int(name[2:-1])] / sum(scores) if sum(scores) else 0.0


def paired(gaps: list[float]) -> tuple[float, float]:
    """Mean and standard error of paired differences."""
    return fmean(gaps), stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0


def forced(target: LoadedModel, topics: Topics, stories: list[str]) -> list[list[Cell]]:
    """A row a topic: its share in the sentence by itself, in the forced one, and the difference."""
    names = [name for name in topic_tokens(target).ids if name not in (NO_TOPIC, END_TOPIC)]
    known = sorted(name for name in names if int(name[2:-1]) < len(topics.weights))
    rows = []
    own = {s: first(target, s, "") for s in stories}
    for name in known:
        after = [first(target, s, name) for s in stories]
        free = [share(topics, name, own[s]) for s in stories]
        under = [share(topics, name, sentence) for sentence in after]
        right = fmean([topics.token(sentence) == name for sentence in after])
        gap, error = paired([b - a for a, b in zip(free, under, strict=True)])
        words = " ".join(list(topics.weights[int(name[2:-1])])[:3])
        rows.append([f"{name.strip('<>')}: {words}", fmean(free), fmean(under), gap, error, right])
    return rows


def first(target: LoadedModel, story: str, name: str) -> str:
    """The sentence behind a story's first one, under a topic, or under the model's own."""
    names = list(topic_tokens(target).ids)
    written = told(target, begun(story), SENTENCE, plan=name, max_sentences=1)
    return (tagged(written, names) or [""])[0]


def f1(found: list[str], wanted: list[str]) -> float:
    """F1 of two sets of topics."""
    common = len(set(found) & set(wanted))
    return 2 * common / (len(set(found)) + len(set(wanted))) if found and wanted else 0.0


def covered(target: LoadedModel, topics: Topics, stories: list[str]) -> dict[str, list[float]]:
    """For each way of writing, the F1 of its topics against those of each story, in the stories' order."""
    names = list(topic_tokens(target).ids)
    plans = [[topics.token(s) for s in sentences(story)[1:]] for story in stories]
    found: dict[str, list[float]] = {}
    for at, story in enumerate(stories):
        ways = {
            "without topic tokens": plain(target, begun(story), TOKENS),
            "its own plan": told(target, begun(story), TOKENS),
            "the story's plan": told(target, begun(story), TOKENS, plan=" ".join(plans[at])),
            "another story's plan": told(target, begun(story), TOKENS, plan=" ".join(plans[at - 1])),
        }
        for way, text in ways.items():
            made = sentences(text) if way == "without topic tokens" else tagged(text, names)
            count = len(plans[at])
            score = f1([topics.token(s) for s in made][:count], plans[at])
            found.setdefault(way, []).append(score)
    return found


def run(models: Models) -> Result:
    """A row a topic, and a row for each way of writing whole stories."""
    target = with_topics(models)
    topics = table_of(target)
    stories = [s for s in dict.fromkeys(texts("stories")) if len(sentences(s)) > 3]
    rows = forced(target, topics, stories[:BEGINNINGS])
    scores = covered(target, topics, stories[:STORIES])
    base = scores["without topic tokens"]
    says = [
        f"Forced under a topic, a sentence has {fmean([row[3] for row in rows]):+.2f} more of it, on average "
        f"over {len(rows)} topics; its words name the forced topic in "
        f"{fmean([row[5] for row in rows]):.0%} of the cases. In {sum(r[3] > 2 * r[4] for r in rows)} of "
        f"{len(rows)} topics the gain is above two standard errors."
    ]
    for way, found in scores.items():
        gap, error = paired([a - b for a, b in zip(found, base, strict=True)])
        rows.append([f"F1, {way}", fmean(base), fmean(found), gap, error, None])
        if way != "without topic tokens":
            says.append(
                f"Topics of a story, {way}: F1 {fmean(found):.2f}, without topic tokens {fmean(base):.2f}; "
                f"ahead by {gap:.3f} ± {error:.3f}."
            )
    columns = ["topic, or way", "by itself", "under it", "gain", "± error", "named"]
    return Result(columns, rows, [one.replace(" -", " −") for one in says])
