"""Training data for a model that summarises fact sheets: under a plan, whose units are tagged in the sheet,
and sentence by sentence with a topic in front of each.
"""

import random

from transformers import PreTrainedTokenizerFast

from decoders.models.token_bytes import TokenBytes
from decoders.search.planned.discourse_units import CLOSE, OPEN, TAGS, oracle
from decoders.search.planned.plan_tags import Tags, source_of
from decoders.search.planned.topic_tokens import END_TOPIC, NO_TOPIC, Topics
from explorer.corpus import END, PAD
from explorer.tasks.summaries import Sheet, make_sheet
from explorer.training.data import Document, Rows, document, padded
from explorer.training.data.forms import TOPICS

ADDED = (*TAGS, *(f"<t{k}>" for k in range(TOPICS)), NO_TOPIC, END_TOPIC)
DRAWN = 4  # times as many sheets are drawn as a batch takes, so that those of a batch have about one length


class Sheets:
    """Makes documents of both forms. tokenizer: one that knows ADDED."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, topics: Topics):
        self.tokenizer, self.topics, self.bytes_of = tokenizer, topics, TokenBytes(tokenizer)
        self.id = {token: tokenizer.convert_tokens_to_ids(token) for token in (*ADDED, END, PAD)}
        self.tags = Tags(self.id[OPEN], self.id[CLOSE])

    def cut(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self.tokenizer(text)["input_ids"]

    def sheets(self, seed: str, count: int) -> list[Sheet]:
        """Sheets of similar length."""
        rng = random.Random(f"sheets {seed}")
        drawn = sorted((make_sheet(rng) for _ in range(DRAWN * count)), key=lambda sheet: len(sheet.text))
        first = rng.randrange(DRAWN) * count
        return drawn[first : first + count]

    def realised(self, sheet: Sheet, rng: random.Random) -> tuple[Document, Document, Document]:
        """The summary after the bare sheet, after the sheet with the tags of its oracle plan, and with those
        of a corrupted plan: as many units that are not in it, as far as there are any.
        """
        source = source_of(self.cut(sheet.prompt), self.bytes_of)
        plan = oracle(source.texts, sheet.summary)
        rest = [i for i in range(len(source.texts)) if i not in plan]
        wrong = rng.sample(rest, min(len(plan), len(rest)))
        answer = [*self.cut(sheet.answer), self.id[END]]
        return tuple(document(source.tagged(some, self.tags)[0], answer) for some in ((), plan, wrong))

    def planned(self, sheet: Sheet) -> Document:
        """The summary with a topic in front of each sentence, and its end."""
        answer = []
        for sentence in sheet.summary:
            answer += [self.id[self.topics.token(sentence)], *self.cut(f" {sentence}")]
        return document(self.cut(sheet.prompt), [*answer, self.id[END_TOPIC], self.id[END]])

    def batch(self, seed: str, count: int) -> Rows:
        """`count` sheets in four documents each: (rows, labels), both [4, count, T]: bare, with tags, with
        wrong tags, with topics.
        """
        rng = random.Random(f"plans {seed}")
        made = [(*self.realised(sheet, rng), self.planned(sheet)) for sheet in self.sheets(seed, count)]
        flat = [one for documents in zip(*made, strict=True) for one in documents]
        rows, labels = padded(flat, self.id[PAD])
        return rows.unflatten(0, (4, count)), labels.unflatten(0, (4, count))
