"""A tuned prompt with a head beside a trie search: what is learned, what is read, and what is answered."""

import math

import pytest
import torch

from decoders.lane import Lane, Limits
from explorer.experiments.asked import Timed
from explorer.experiments.models.tuned_prompt import (
    IGNORED,
    Answer,
    LabelHead,
    TunedPrompt,
    answer_loss,
    label_loss,
    padded,
    positive_weights,
)
from explorer.experiments.small_trainings import label_head
from explorer.experiments.small_trainings.label_head import measures, predicted, searcher, tuned_head
from explorer.experiments.small_trainings.toy_topics import LABELS, TOPICS, stories

STORIES = stories(12, 0, True)


@pytest.fixture(scope="module")
def target(tiny_model):
    yield tiny_model("llama")
    tiny_model("llama").model.zero_grad()


def test_stories_to_learn_from_lack_words_that_the_test_has():
    def texts(learning):
        return " ".join(story.text for story in stories(400, 3, learning))

    kept = {word for _, words in TOPICS.values() for word in words.split()[-2:]} - {"fish"}
    missing = {word for word in kept if f" {word}." in texts(False) or f" {word} " in texts(False)}
    assert missing == kept and not any(f" {word}." in texts(True) for word in kept)
    assert {len(story.topics) for story in STORIES} == {1, 2, 3}
    assert all(set(story.topics) <= set(LABELS) for story in STORIES)


def test_the_head_reads_once_and_gives_every_label_a_probability_of_its_own(target, monkeypatch):
    head = LabelHead(TunedPrompt(target.model), 3)
    calls = []
    forward = type(target.model.model).forward

    def counted(self, *args, **kwargs):
        calls.append(kwargs["inputs_embeds"].shape[1])
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(type(target.model.model), "forward", counted)
    answer = head.answer([5, 6, 7])
    assert calls == [8 + 3] and (answer.forwards, answer.read) == (1, 11)
    table = target.model.get_input_embeddings()(torch.tensor([[5, 6, 7]]))
    read = torch.cat([head.prompt.vectors[None], table], 1)
    with torch.no_grad():
        state = target.model.model(inputs_embeds=read).last_hidden_state[0, -1]
        wanted = torch.sigmoid(head.scores.weight @ state + head.scores.bias)
    assert list(answer.confidence.values()) == pytest.approx(wanted.tolist(), abs=1e-6)


def test_a_text_that_is_filled_up_is_read_as_alone(target):
    head = LabelHead(TunedPrompt(target.model), 3)
    tokens, last, _ = padded([[5, 6, 7, 8, 9], [4, 3]])
    with torch.no_grad():
        together, alone = head(tokens, last)[1], head(torch.tensor([[4, 3]]), torch.tensor([1]))[0]
    assert together.tolist() == pytest.approx(alone.tolist(), abs=1e-5)


def test_labels_that_are_rare_weigh_more():
    wanted = torch.tensor([[1.0, 0], [0, 0], [0, 1], [0, 1]])
    weights = positive_weights(wanted)
    assert weights.tolist() == [3, 1]
    logits = torch.tensor([[0.4, -0.2]])
    loss = label_loss(logits, torch.tensor([[1.0, 0.0]]), weights)
    by_hand = (-3 * math.log(1 / (1 + math.exp(-0.4))) - math.log(1 - 1 / (1 + math.exp(0.2)))) / 2
    assert float(loss) == pytest.approx(by_hand, abs=1e-6)


def test_only_the_answer_counts_in_the_loss_of_the_search(target):
    tokens, last, targets = padded([[5, 6], [7, 8, 9]], [[1, 2], [3]])
    assert last.tolist() == [1, 2]
    assert targets.tolist() == [[IGNORED, 1, 2, IGNORED], [IGNORED, IGNORED, 3, IGNORED]]
    prompt = TunedPrompt(target.model)
    with torch.no_grad():
        logits = target.model(inputs_embeds=prompt.before(tokens)).logits.log_softmax(-1)
        by_hand = -(logits[0, 8 + 1, 1] + logits[0, 8 + 2, 2] + logits[1, 8 + 2, 3]) / 3
        assert float(answer_loss(prompt, tokens, targets)) == pytest.approx(float(by_hand), abs=1e-5)


def test_prompt_and_head_learn_and_the_model_stays_as_it_is(target, monkeypatch):
    for name, value in dict(STEPS=12, BATCH=4).items():
        monkeypatch.setattr(label_head, name, value)
    before = {name: p.clone() for name, p in target.model.named_parameters()}
    untouched = LabelHead(TunedPrompt(target.model), len(LABELS))
    head = tuned_head({"draft": target}, STORIES)
    assert all(torch.equal(p, before[name]) for name, p in target.model.named_parameters())
    assert {name for name, _ in head.named_parameters()} == {"prompt.vectors", "scores.weight", "scores.bias"}
    assert not torch.equal(head.prompt.vectors, untouched.prompt.vectors)
    tokens, last, _ = padded([target.encode(label_head.question(one)) for one in STORIES])
    wanted = label_head.wanted_of(STORIES)
    with torch.no_grad():
        losses = [float(label_loss(h(tokens, last), wanted, torch.ones(8))) for h in (untouched, head)]
    assert losses[1] < losses[0]


def test_without_a_prompt_the_search_is_the_strategy_of_that_name(target):
    story, lane_of = STORIES[0], {"labels": "|".join(LABELS)}
    found = searcher({"draft": target}, TunedPrompt(target.model, length=0))(story)
    prompt = target.encode(label_head.question(story))
    trace = Lane("trie_search", prompt, {"target": target}, lane_of, 0, Limits(40)).run()
    assert found.forwards == len(trace.output()) == trace.costs.target_forwards
    words = trace.text().removeprefix(" ").removesuffix("<|end|>").split(", ")
    ended = trace.output()[-1] in target.eos
    assert [LABELS[label] for label in found.confidence] == (words if ended else words[:-1])
    kept = math.fsum(
        e.kept for step in trace.steps for e in step.events if getattr(e, "view", "") == "forbidden"
    )
    if ended:  # the confidences multiply to the probability of the whole answer under the mask
        whole = math.exp(trace.costs.logprob - kept)
        assert math.prod(found.confidence.values()) == pytest.approx(whole, rel=1e-3)


def test_answers_are_judged_as_sets():
    some = [
        Timed(Answer({0: 0.9, 1: 0.4, 3: 0.7}, 1, 10), {0, 1}, 0.004),
        Timed(Answer({2: 0.8, 1: 0.1}, 1, 10), {2}, 0.006),
    ]
    assert sorted(predicted(some)) == [(0.7, False), (0.8, True), (0.9, True)]
    cells = list(measures(some, some).values())
    assert cells[:4] == [1.0, 10.0, 5.0, pytest.approx(2 * 2 / (3 + 3))]
    assert cells[4:7] == [0.5, pytest.approx(0.8), pytest.approx(2 / 3)]
