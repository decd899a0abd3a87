"""The flat and the planned decoder: what they see, when they end, and that a plan is obeyed to the letter."""

import torch

from explorer.experiments.models.topic_decoders import Convolutions, Flat, Planned
from explorer.experiments.small_trainings.topic_decoders import FACTS, TELLS, fact_of, judged, numbered
from explorer.tasks.summaries import Sheet

SHEET = Sheet(
    "Sara has a young fish and Lily plays the piano. Sara is in the park.",
    ["Sara has a young fish", "Lily plays the piano", "Sara is in the park"],
    [0, 2],
    ["The animal of Sara is a young fish.", "The way to Sara leads to the park."],
)
SOURCE = torch.tensor([[3, 4, 5, 0], [6, 7, 3, 4]])


def planned(**changes) -> Planned:
    torch.manual_seed(0)
    given = dict(vocabulary=10, source=4, width=8, layers=1, length=5, topics=3, sentences=2)
    return Planned(**given | changes).eval()


def test_facts_and_their_paraphrases_are_the_same_fact():
    facts = [fact_of(unit, FACTS) for unit in SHEET.units]
    assert [fact[0] for fact in facts] == [3, 6, 1]
    assert [fact_of(sentence, TELLS) for sentence in SHEET.summary] == [facts[0], facts[2]]
    assert fact_of("The animal of Sara is a young piano.", TELLS) is None


def test_a_summary_is_judged_by_topics_facts_truth_and_repetition():
    assert judged(SHEET, SHEET.summary) == [1.0, 1.0, 1.0, 0.0]
    other = ["The animal of Lily is a big cat.", "The animal of Lily is a big cat."]
    assert judged(SHEET, other) == [0.5, 0.0, 0.0, 1.0]


def test_sheets_become_numbers():
    data = numbered([SHEET])
    words = [data.words[at] for at in data.sentences[0, 0].tolist()]
    assert words[:4] == ["|", "The", "animal", "of"] and words[9:11] == [".", "|"]
    assert data.topics.tolist() == [[3, 1, 9, -1, -1]]


def test_a_convolution_sees_no_later_word_and_few_earlier_ones():
    torch.manual_seed(0)
    model, words = Convolutions(8, 2, 9), torch.randn(1, 9, 8)
    rest = torch.zeros(1, 1, 8), torch.randn(1, 3, 8), torch.zeros(1, 3, dtype=torch.bool)
    other = words.clone()
    other[0, 2] += 1
    same = (model(words, *rest) - model(other, *rest)).abs().amax(-1)[0] < 1e-6
    assert same.tolist() == [True, True, False, False, False, False, False, True, True]


def test_its_own_plan_gives_its_own_text_and_another_plan_is_followed():
    model = planned()
    texts, plans = model.texts(SOURCE)
    assert model.texts(SOURCE, plans) == (texts, plans)
    _, other = model.texts(SOURCE, [[2, 0], [1]])
    assert other == [[2, 0], [1]]


def test_the_topic_end_ends_the_text():
    model = planned()
    with torch.no_grad():
        model.topic.bias[3] = 100.0
    assert model.texts(SOURCE) == ([[], []], [[], []])


def test_both_learn_a_text():
    sentences = torch.tensor([[[1, 5, 6, 1, 0], [1, 7, 1, 0, 0]], [[1, 8, 9, 1, 0], [0, 0, 0, 0, 0]]])
    text = torch.tensor([[1, 5, 6, 7, 1], [1, 8, 9, 1, 0]])
    topics = torch.tensor([[0, 1, 3], [2, 3, -1]])
    torch.manual_seed(0)
    flat, model = Flat(10, 4, 16, 1, 6), planned(width=16)
    for one, loss in (
        (flat, lambda: flat.loss(SOURCE, text)),
        (model, lambda: model.loss(SOURCE, sentences, topics)),
    ):
        optimizer = torch.optim.AdamW(one.parameters(), 1e-2)
        for _ in range(80):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    assert flat.eval().texts(SOURCE) == [[5, 6, 7], [8, 9]]
    assert model.eval().texts(SOURCE) == ([[[5, 6], [7]], [[8, 9]]], [[0, 1], [2]])
