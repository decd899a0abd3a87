"""Dynamic beam allocation: the banks' slots, what is met, and against beam search and exhaustive search."""

import itertools
import math
import random

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.search.beam.hypotheses import returned
from decoders.search.beam.lexical_constraint import LexicalConstraint, phrases_of, slots_per_bank
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.scores import Measure
from decoders.trace.trace import Trace
from tests.decoders.search.beam.test_beam import settings

EOS = 0


def run(model, prompt, new_tokens: int = 12, strategy: str = "dba", **parameters) -> Trace:
    return Lane(strategy, list(prompt), {"target": model}, parameters, limits=Limits(new_tokens)).run()


def table(seed: int, vocabulary: int = 4) -> TableModel:
    """Random rows that depend on the whole text; token 0 ends it."""

    def row(past):
        luck = random.Random(hash((seed, *past)))
        weights = [luck.expovariate(1.0) for _ in range(vocabulary)]
        return [w / sum(weights) for w in weights]

    return TableModel(row, vocabulary, eos=frozenset({EOS}))


def after(phrases: list[list[int]], text: list[int], retry: bool = True):
    constraint = LexicalConstraint(phrases, retry)
    met = constraint.start()
    for token in text:
        met = constraint.advance(met, token)
    return constraint, met


def holds(text: list[int], phrase: list[int]) -> bool:
    return any(text[i : i + len(phrase)] == phrase for i in range(len(text)))


# ---- the parts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "candidates", "slots"),
    [
        (10, [30, 1, 0, 5, 3], [5, 1, 0, 2, 2]),
        (3, [1, 2, 0, 0, 0], [1, 2, 0, 0, 0]),
        (6, [2, 10, 0], [2, 4, 0]),
        (4, [9], [4]),
        (6, [0, 9, 2], [0, 4, 2]),  # what bank 0 passes to the last one goes around until it is filled
        (8, [1, 0, 3], [1, 0, 3]),  # fewer candidates than slots
    ],
)
def test_slots_are_shared_out_as_worked_by_hand(width, candidates, slots):
    assert slots_per_bank(width, candidates) == slots


def test_all_slots_are_filled_and_no_bank_has_more_than_it_can_fill():
    luck = random.Random(0)
    for _ in range(500):
        candidates = [luck.choice([0, 0, 1, 2, 9, 30]) for _ in range(luck.randint(1, 7))]
        width = luck.randint(1, 20)
        slots = slots_per_bank(width, candidates)
        assert sum(slots) == min(width, sum(candidates))
        assert all(0 <= have <= there for have, there in zip(slots, candidates, strict=True))


@pytest.mark.parametrize(("retry", "met"), [(True, True), (False, False)])
def test_a_token_that_breaks_a_phrase_starts_it_anew_if_that_is_asked_for(retry, met):
    constraint, state = after([[1, 2]], [1, 1, 2], retry)
    assert constraint.may_end(state) is met
    _, broken = after([[1, 2]], [1, 1], retry)
    assert broken.count == (1 if retry else 0)


def test_inside_a_phrase_only_its_next_token_helps_and_any_other_unmeets_all_of_it():
    phrases = [[1, 2, 3], [5]]
    constraint, state = after(phrases, [1, 2])
    assert constraint.allowed(state) == [3] and state.count == 2
    _, broken = after(phrases, [1, 2, 5])
    assert broken.flags == (False, False, False, True)  # 5 is a phrase of its own
    assert after(phrases, [1, 2, 5], retry=False)[1].count == 0
    constraint, state = after(phrases, [5, 9])
    assert constraint.allowed(state) == [1] and not constraint.may_end(state)
    assert constraint.may_end(after(phrases, [1, 2, 3, 5])[1])


def test_a_phrase_that_is_asked_for_twice_must_come_twice():
    constraint, once = after([[1], [1]], [1])
    assert not constraint.may_end(once) and constraint.may_end(after([[1], [1]], [1, 1])[1])


def test_words_are_taken_behind_a_space_and_in_quotes_literally():
    def cut(text: str) -> list[int]:
        return [ord(c) for c in text]

    assert phrases_of('ab, "c", #7', cut, 300) == [(32, 97, 98), (99,), (7,)]
    assert phrases_of("  ", cut, 300) == []
    with pytest.raises(
        ValueError, match="phrases has 41 tokens, and at most 32 can be asked for; type fewer"
    ):
        phrases_of("a" * 40, cut, 300)


# ---- the search ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_without_phrases_it_is_beam_search(kind, tiny_model):
    model = tiny_model(kind)
    for seed in range(12):
        prompt, new_tokens, parameters = settings(seed)
        plain = run(model, prompt, new_tokens, "beam", **parameters)
        banked = run(model, prompt, new_tokens, **parameters)
        assert returned(banked) == returned(plain)
        assert banked.output() == plain.output()
        assert banked.badge == "equal to generate"
    parameters = {"num_beams": 4, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2}
    assert returned(run(model, [5, 6], 12, **parameters)) == returned(
        run(model, [5, 6], 12, "beam", **parameters)
    )


def test_every_finished_text_holds_every_phrase():
    luck, finished = random.Random(1), 0
    for seed in range(400):
        phrases = [
            [luck.randrange(1, 4) for _ in range(luck.randint(1, 2))] for _ in range(luck.randint(1, 2))
        ]
        typed = ", ".join('"' + "".join(chr(97 + t) for t in phrase) + '"' for phrase in phrases)
        model = table(seed)
        model.cut = lambda text: [ord(c) - 97 for c in text]
        asked = {"num_beams": luck.randint(1, 4), "retry": luck.random() < 0.5, "phrases": typed}
        trace = run(model, [1], luck.randint(3, 6), **asked)
        nodes = trace.nodes()
        for verdict in (v for step in trace.steps for v in step.of(Verdict) if v.status == "finished"):
            text, node = [], verdict.node
            while node >= 1:
                node, token = nodes[node]
                text.append(token)
            text.reverse()
            if text[-1] == EOS:
                finished += 1
                assert all(holds(text, phrase) for phrase in phrases), (seed, text, phrases)
    assert finished > 160


@pytest.mark.parametrize("length", [3, 4])
def test_a_wide_beam_finds_what_exhaustive_search_finds(length):
    tried = 0
    for seed in range(20):
        model = table(seed)
        phrases = random.Random(seed).choice([[[1]], [[2], [3]], [[1, 2]]])
        texts = {
            text: math.log(p)
            for text, p in exact_distribution(model, [1], length).items()
            if (text[-1] == EOS) and all(holds(list(text), phrase) for phrase in phrases)
        }
        best = max(texts, key=texts.get)
        typed = ", ".join('"' + "".join(chr(97 + t) for t in phrase) + '"' for phrase in phrases)
        model.cut = lambda text: [ord(c) - 97 for c in text]
        ranking = {"length_penalty": 0.0, "early_stopping": "never", "num_return_sequences": 64}
        found = returned(run(model, [1], length, phrases=typed, num_beams=64, **ranking))
        ended = [(tuple(text), score) for text, score in found if text[-1] == EOS]
        assert ended[0] == (best, pytest.approx(texts[best]))
        assert {text for text, _ in ended} == set(texts) or length == 4  # of more than 64, 64 may finish
        tried += len(texts)
    assert tried > 50


def test_one_forward_per_step_and_few_candidates_whatever_is_asked_for(tiny_model):
    width = 5
    for phrases in ("#5", "#5, #9", "#5, #9, #5, #44, #7"):
        count = phrases.count("#")
        trace = run(tiny_model("llama"), [1, 2, 3], 15, num_beams=width, phrases=phrases)
        nodes = trace.nodes()
        for step in trace.steps:
            assert len(step.of(Forward)) == 1
            ends = sum(nodes[e.node][1] in tiny_model("llama").eos for e in step.of(Propose))
            assert len(step.of(Propose)) - ends <= width + count * width + width
        assert all(t in trace.output() for t in (5, 9)[:count])


def test_banks_and_what_is_met_are_recorded(tiny_model):
    trace = run(tiny_model("llama"), [1, 2, 3], 10, num_beams=6, phrases="#5, #9")
    for step in trace.steps:
        slots = {e.level: e.total for e in step.of(Measure) if e.name == "bank_slots"}
        kept = [e for e in step.of(Measure) if e.name == "met"]
        assert set(slots) == {"bank 0", "bank 1", "bank 2"} and sum(slots.values()) == 6
        assert all(e.level == f"bank {int(e.total)}" for e in kept)
        living = [e for e in kept if not any(v.node == e.node for v in step.of(Verdict))]
        for bank, count in slots.items():
            assert sum(e.level == bank for e in living) <= count


def test_what_the_limit_left_out_is_said():
    model = table(3)
    model.cut = lambda text: [ord(c) - 97 for c in text]
    trace = run(model, [1], 2, phrases='"bcd"', num_beams=4)
    notes = [note.text for step in trace.steps for note in step.of(Note)]
    assert len(notes) == 1
    assert "not in the text" in notes[0] and notes[0].endswith(
        "The limit of 2 new tokens came first; allow more."
    )


@pytest.mark.parametrize(
    ("phrases", "sentence"),
    [
        ("#999", "there is no token #999"),
        ("dog", "this model has no tokenizer"),
        ("#0", "phrases holds a token that ends the text; leave it out."),
        (", ,", "phrases has no words in it"),
    ],
)
def test_phrases_that_cannot_be_met_are_refused_with_a_sentence(phrases, sentence):
    with pytest.raises(ValueError, match=sentence):
        run(table(0), [1], phrases=phrases)


def test_broken_phrases_in_a_search_show_the_difference_of_retry():
    """The only way on is a a b: with retry it holds the phrase ab, without it does not."""
    forced = {(): 1, (1,): 1, (1, 1): 2}
    model = TableModel(
        lambda past: [float(t == forced.get(tuple(past[1:]), EOS)) for t in range(3)], 3, eos=frozenset({EOS})
    )
    model.cut = lambda text: [ord(c) - 97 for c in text]
    kept = run(model, [0], 4, phrases='"bc"', num_beams=2)
    assert kept.output() == [1, 1, 2, EOS]
    lost = run(model, [0], 4, phrases='"bc"', num_beams=2, retry=False)
    assert lost.output() != [1, 1, 2, EOS]


def test_what_a_lane_begins_with_counts():
    """b was given: the text may end at once, which it does."""
    model = TableModel(lambda past: [0.7, 0.1, 0.1, 0.1], 4, eos=frozenset({EOS}))
    model.cut = lambda text: [ord(c) - 97 for c in text]
    asked = {"phrases": '"b"', "num_beams": 4}
    lanes = [
        Lane("dba", [1], {"target": model}, asked, limits=Limits(5), begin=begin).run()
        for begin in (None, {"tokens": [1]})
    ]
    assert [lane.output() for lane in lanes] == [[1, EOS], [1, EOS]]
    candidates = [
        [e.parts["candidates"] for e in lane.steps[-1].of(Measure) if e.name == "bank_slots"]
        for lane in lanes
    ]
    assert candidates[1][0] == 0.0 < candidates[1][1]  # all of them are in bank 1 from the first step on


def test_all_orders_of_two_words_are_reached():
    """Both orders have equal probability; the beam holds texts that met either word first."""
    model = TableModel(lambda past: [0.25] * 4, 4, eos=frozenset({EOS}))
    model.cut = lambda text: [ord(c) - 97 for c in text]
    ranking = {"length_penalty": 0.0, "num_return_sequences": 8}
    found = returned(run(model, [1], 3, phrases='"b", "c"', num_beams=8, **ranking))
    texts = [tuple(text) for text, _ in found]
    assert {t + (EOS,) for t in itertools.permutations((1, 2))} <= set(texts)
