"""Topics of a model that was trained with a topic token in front of each sentence, and how a sentence's topic
is found from its words.
"""

import re
from dataclasses import dataclass

from decoders.models.token_bytes import by_name

TOPICS = "topics.json"  # beside the weights of such a model: a dictionary of words and weights a topic
NO_TOPIC, END_TOPIC = "<t9>", "<end>"  # of a sentence that fits none; in place of a sentence, at the end
SEAM = re.compile(r"(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?:(?<=[.!?])|(?<=[.!?][\"”]))(?=\s+[\"“A-Z])")
WORD = re.compile(r"[A-Za-z]+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space in front of it: joined they are the text."""
    return SEAM.split(text) if text else []


@dataclass(frozen=True)
class Topics:
    """Topic k is a weight for each of its words, the heaviest first."""

    weights: list[dict[str, float]]

    @staticmethod
    def words_of(sentence: str) -> list[str]:
        """The words that show topics: no names, no first words, nothing shorter than three letters."""
        return [word for word in WORD.findall(sentence) if word.islower() and len(word) > 2]

    def scores(self, sentence: str) -> list[float]:
        """How much of each topic is in a sentence."""
        words = self.words_of(sentence)
        return [sum(topic.get(word, 0.0) for word in words) for topic in self.weights]

    def token(self, sentence: str) -> str:
        """The token of the topic that a sentence has most of, NO_TOPIC if none of its words is in any."""
        scores = self.scores(sentence)
        best = max(scores, default=0.0)
        return f"<t{scores.index(best)}>" if best > 0 else NO_TOPIC


@dataclass(frozen=True)
class TopicTokens:
    """A model's tokens for topics, and the one that stands in place of a sentence at the end."""

    ids: dict[str, int]  # name -> token, the end's included

    @property
    def end(self) -> int:
        return self.ids[END_TOPIC]

    @property
    def topics(self) -> list[int]:
        """In the order of their ids, without the end."""
        return sorted(token for name, token in self.ids.items() if name != END_TOPIC)


def topic_tokens(target) -> TopicTokens | None:
    """Those of a model; None if it has none."""
    known = by_name(target)
    ids = {name: token for name, token in known.items() if re.fullmatch(r"<t\d+>", name) or name == END_TOPIC}
    return TopicTokens(ids) if len(ids) > 1 and END_TOPIC in ids else None


def typed_topic_tokens(typed: str) -> list[str]:
    """The tokens that a person names: `t3 t1, end` are `<t3>`, `<t1>` and `<end>`."""
    return [f"<{name.strip('<>')}>" for name in re.split(r"[\s,]+", typed) if name]
