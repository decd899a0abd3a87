"""Texts in two new forms, for a model that is fine-tuned on them: with the middle last (PRE a SUF c MID b
EOT) and with a topic in front of each sentence (`<t7> sentence <t2> sentence <end>`).
"""

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from decoders.search.planned.topic_tokens import END_TOPIC, NO_TOPIC, Topics, sentences
from explorer.corpus import CONTEXT, END, IGNORED, PAD, story_rows, task_rows
from explorer.tasks import TASKS
from explorer.training.data import Rows

PRE, SUF, MID, EOT = SENTINELS = ("<PRE>", "<SUF>", "<MID>", "<EOT>")
TOPICS = 9  # clusters; a tenth topic is that of sentences which fit none
ADDED = (*SENTINELS, *(f"<t{k}>" for k in range(TOPICS)), NO_TOPIC, END_TOPIC)
INFILLED = ("list_program", "python", "json", "json", "story", "story")
LONGEST = 120  # tokens of the part of a story whose middle is taken out
WHOLE = 0.15  # share of texts behind PRE of which nothing is taken out: so it can end from left to right
SENTENCES, RARE, FREQUENT, WORDS, STARTS = 20_000, 1_400, 0.012, 60, 3  # of the topics: see `topics_of`
Document = tuple[list[int], list[int]]  # token ids and labels


def topics_of(
    stories: list[str], common: int = RARE, frequent: float = FREQUENT, starts: int = STARTS
) -> Topics:
    """The topics of the texts' sentences: k-means on TF-IDF vectors of their lower-case words, restricted to
    the `common` most common ones that occur in at most a share `frequent` of all sentences. A topic is
    represented by its WORDS heaviest words. starts: of k-means, of which the best counts.
    """
    rng = random.Random(0)
    chosen = [s for story in rng.sample(stories, min(len(stories), SENTENCES // 4)) for s in sentences(story)]
    bags = [Topics.words_of(s) for s in rng.sample(chosen, min(len(chosen), SENTENCES))]
    counts = Counter(word for bag in bags for word in dict.fromkeys(bag))  # ties in their order in the texts
    words = [w for w, count in counts.most_common(common) if count <= frequent * len(bags) + 1]
    place = {word: at for at, word in enumerate(words)}
    idf = np.log(len(bags) / np.array([counts[word] for word in words]))
    vectors = np.zeros((len(bags), len(words)), np.float32)
    for row, bag in enumerate(bags):
        for word in bag:
            if word in place:
                vectors[row, place[word]] += idf[place[word]]
    vectors = unit(vectors[vectors.any(1)])
    tried = (k_means(vectors, seed) for seed in range(starts))
    weights = max(tried, key=lambda c: (vectors @ c.T).max(1).mean())
    weights = (weights - weights.mean(0)) * idf  # what a topic has more of than the others
    return Topics(
        [
            {words[at]: round(float(row[at]), 2) for at in np.argsort(-row)[:WORDS] if row[at] >= 0.01}
            for row in weights
        ]
    )


def k_means(vectors: np.ndarray, seed: int, rounds: int = 40) -> np.ndarray:
    """TOPICS unit vectors [K, W] that cluster unit vectors [N, W]: each is the mean of its cluster. An empty
    cluster restarts with the vector that is farthest from all.
    """
    rng = np.random.default_rng(seed)
    centres = vectors[rng.choice(len(vectors), TOPICS, replace=len(vectors) < TOPICS)]
    for _ in range(rounds):
        near = vectors @ centres.T
        nearest, farthest = near.argmax(1), vectors[near.max(1).argmin()]
        sums = [vectors[nearest == k].sum(0) for k in range(TOPICS)]
        centres = unit(np.stack([s if s.any() else farthest for s in sums]))
    return centres


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length one."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Forms:
    """Makes documents of both forms from stories and problems. tokenizer: one that knows ADDED."""

    def __init__(self, stories: list[str], tokenizer: PreTrainedTokenizerFast, topics: Topics):
        self.stories, self.tokenizer, self.topics = stories, tokenizer, topics
        self.id = {token: tokenizer.convert_tokens_to_ids(token) for token in (*ADDED, END, PAD)}

    def cut(self, texts: list[str]) -> list[list[int]]:
        """Token ids of each text, none of them in a new form."""
        return self.tokenizer(texts)["input_ids"] if texts else []

    def infilling(self, rng: random.Random) -> Document:
        """One text with its middle last, cut at line breaks (stories: between sentences) or anywhere. The
        statement of a problem stays in front and has no loss.
        """
        task = rng.choice(INFILLED)
        if task == "story":
            parts, units = [], self.cut(sentences(rng.choice(self.stories)))
            first = rng.choice((0, rng.randrange(len(units))))
            units = units[first : first + rng.randint(3, 8)]
        else:
            problem = TASKS[task].make(rng)
            parts, *units = self.cut([problem.prompt, *problem.answer.splitlines(keepends=True)])
        ids = [token for unit in units for token in unit][:LONGEST]
        seams = [0, *np.cumsum([len(unit) for unit in units]).tolist()]
        places = [at for at in seams if at <= len(ids)]
        if len(places) < 3 or rng.random() < 0.5:
            places = range(len(ids) + 1)
        begin, end = sorted(rng.sample(places, 2))
        if rng.random() < WHOLE:
            document = [*ids, self.id[END]]
        else:
            a, b, c = ids[:begin], ids[begin:end], ids[end:]
            document = [*a, self.id[SUF], *c, self.id[MID], *b, self.id[EOT]]
        return [self.id[PRE], *parts, *document], [IGNORED] * (1 + len(parts)) + document

    def planned(self, rng: random.Random) -> Document:
        """A story with a topic in front of its sentences, sometimes skipping the first ones."""
        units = sentences(rng.choice(self.stories))
        bare = rng.choice((0, 0, 1, 2))
        ids: list[int] = []
        for at, (unit, tokens) in enumerate(zip(units, self.cut(units), strict=True)):
            ids += [*([self.id[self.topics.token(unit)]] if at >= bare else []), *tokens]
        ids += [self.id[END_TOPIC], self.id[END]]
        return ids, [IGNORED, *ids[1:]]

    def rows(self, make: Callable[[random.Random], Document], rng: random.Random, count: int) -> Rows:
        """`count` padded rows of whole documents from `make`: (rows, labels), both [count, CONTEXT]."""
        packed = []
        while len(packed) < count:
            ids, labels = [], []
            while len(ids) < CONTEXT:
                document, learned = make(rng)
                if len(ids) + len(document) > CONTEXT:
                    if len(ids) > CONTEXT // 2:
                        break
                    continue  # too long for what is left: another one
                ids, labels = ids + document, labels + learned
            padding = CONTEXT - len(ids)
            packed.append((ids + [self.id[PAD]] * padding, labels + [IGNORED] * padding))
        rows, labels = zip(*packed, strict=True)
        return torch.tensor(rows), torch.tensor(labels)

    def batch(self, seed: str) -> Rows:
        """Two rows with the middle last and one with topics: (rows, labels), both [3, CONTEXT]."""
        rng = random.Random(f"forms {seed}")
        return joined(self.rows(self.infilling, rng, 2), self.rows(self.planned, rng, 1))

    def mixed(self, packed: np.ndarray, seen: int) -> Rows:
        """The batch after `seen` tokens: `batch`, and alternately a row of plain stories from `packed` [T] or
        of plain problems, so that the model does not forget them.
        """
        if seen // (4 * CONTEXT) % 2:
            return joined(self.batch(str(seen)), task_rows(self.tokenizer, f"forms {seen}", 1, CONTEXT))
        plain = story_rows(packed, seen // 8, 1, CONTEXT)
        return joined(self.batch(str(seen)), (plain, plain))


def joined(*parts: Rows) -> Rows:
    """Rows and labels of several batches, concatenated."""
    rows, labels = zip(*parts, strict=True)
    return torch.cat(rows), torch.cat(labels)
