"""The shipped pair: it tells a coherent story, and the draft is neither hopeless nor perfect."""

import re

import pytest

from decoders.lane import Lane, Limits
from decoders.models.catalog import DRAFT, TARGET
from decoders.models.loading import load
from decoders.trace.events import Verdict

BEGINNINGS = (
    "Once upon a time, there was a little girl named Lily.",
    "In a quiet forest, a young fox named Finn",
    "Tom and his sister went to the beach. They",
    "The old owl looked at the small mouse and said,",
    "One morning, Anna woke up and saw",
    "A brave rabbit lived near the river.",
)


@pytest.fixture(scope="module")
def pair():
    return {"target": load(TARGET), "draft": load(DRAFT)}


def test_greedy_acceptance_leaves_rejections_to_be_seen(pair):
    counts = {"accepted": 0, "rejected": 0}
    for text in BEGINNINGS:
        prompt = pair["target"].encode(text)
        trace = Lane("speculative", prompt, pair, {"num_assistant_tokens": 4}, limits=Limits(48)).run()
        for verdict in (v for s in trace.steps for v in s.of(Verdict) if v.status in counts):
            counts[verdict.status] += 1
    assert 0.5 < counts["accepted"] / sum(counts.values()) < 0.85


def test_it_tells_a_story(pair):
    """Sentences of known words that keep to their hero: crude signs of coherence that random weights do not
    show.
    """
    prompt = pair["target"].encode(BEGINNINGS[0])
    shape = {"temperature": 0.7, "top_p": 0.9}
    texts = [Lane("sample", prompt, pair, shape, seed=s, limits=Limits(100)).run().text() for s in range(4)]
    whole = " ".join(texts)
    words = re.findall(r"[a-z]+", whole.lower())
    assert sum(w in {"she", "her", "lily"} for w in words) >= 12
    assert whole.count(".") >= 12
    common = sum(w in {"the", "a", "and", "to", "was", "in", "of", "said", "day"} for w in words)
    assert common > 0.15 * len(words)
