"""Topic plans: on a table whose topics and words are known, every choice by hand; on a tiny model what holds
for any text.
"""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.planned.topic_tokens import Topics, sentences, topic_tokens, typed_topic_tokens
from decoders.trace.events import Distribution, Verdict
from tests.helpers import tiny_models

WORDS = ["<t0>", "<t1>", "<t2>", "<end>", "$", "a", "b", "c", "."]
T0, T1, T2, END, EOS, A, B, C, DOT = range(9)
WORD_OF = {T0: A, T1: B, T2: C}


def told(text: tuple[int, ...]) -> list[float]:
    """Topic k says its own word, a dot, and then the next topic; after t2 the end. Topics are surer than
    words where a sentence is over, but none of them is the most likely token alone.
    """
    row = [0.01] * len(WORDS)
    last = text[-1]
    if last in WORD_OF:
        row[WORD_OF[last]] = 0.8
    elif last == DOT:
        before = [token for token in text if token in WORD_OF]
        likeliest = {T0: T1, T1: T2, T2: END}[before[-1]] if before else T0
        row[A], row[likeliest] = 0.34, 0.3
        row[T0] += 0.1
        row[T1] += 0.1
    elif last == END:
        row[EOS] = 0.9
    else:
        row[DOT] = 0.8
    return [p / sum(row) for p in row]


def model() -> TableModel:
    return TableModel(told, len(WORDS), frozenset([EOS]), words=WORDS)


def run(target, prompt=(A, DOT), tokens=30, **parameters):
    return Lane("topic_plan", list(prompt), {"target": target}, parameters, limits=Limits(tokens)).run()


def plan_of(trace, tokens) -> list[int]:
    return [token for token in trace.output() if token in tokens.topics]


def forced(trace) -> list[str]:
    return [v.reason for step in trace.steps for v in step.of(Verdict) if v.status == "forced"]


@pytest.mark.parametrize("beams", [1, 3])
def test_a_sentence_ends_where_all_topics_together_are_likelier_than_any_word(beams):
    trace = run(model(), num_beams=beams)
    assert trace.output() == [T0, A, DOT, T1, B, DOT, T2, C, DOT, END, EOS]


def test_the_prompts_own_sentence_is_over_with_its_first_full_stop():
    """It has no topic in front, so the model need not expect one after it."""

    def shy(text):
        return told(text) if set(text) & set(WORD_OF) else [0.9 if t == DOT else 0.0125 for t in range(9)]

    target = TableModel(shy, len(WORDS), frozenset([EOS]), words=WORDS)
    assert run(target, (A,), plan="t2").output() == [DOT, T2, C, DOT, END, EOS]
    assert run(target, (A, DOT), plan="t2").output() == [T2, C, DOT, END, EOS]


def test_the_end_topic_ends_the_document():
    trace = run(model())
    assert trace.output()[-2:] == [END, EOS] and forced(trace) == ["forced: the topic ends the text"]
    assert run(model(), plan="end").output() == [END, EOS]


def test_a_plan_is_followed_and_ends_the_text_when_it_is_used_up():
    trace = run(model(), plan="t2 t0")
    assert trace.output() == [T2, C, DOT, T0, A, DOT, END, EOS]
    assert forced(trace)[:3] == ["forced: the plan", "forced: the plan", "forced: the plan is used up"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beams", [1, 4])
def test_forcing_its_own_topics_reproduces_its_text(seed, beams):
    target = tiny_models.make("forms", seed)
    tokens, prompt = topic_tokens(target), tiny_models.tokenizer()("ab\nc")["input_ids"]
    own = run(target, prompt, 40, num_beams=beams)
    names = {token: name for name, token in tokens.ids.items()}
    plan = " ".join(names[token] for token in plan_of(own, tokens))
    again = run(target, prompt, 40, num_beams=beams, plan=plan or "end")
    assert again.output() == own.output() or not plan


def test_forbidden_topics_are_never_taken():
    trace = run(model(), forbid="t1, t2")
    assert T0 in trace.output() and not {T1, T2} & set(trace.output())
    offers = [e for step in trace.steps for e in step.of(Distribution) if e.level == "topics"]
    assert offers and all(token not in (T1, T2) for e in offers for token, p in e.top if p > -30)


def test_max_sentences_ends_the_text():
    trace = run(model(), forbid="t1, t2, end", max_sentences=4)
    assert trace.output().count(T0) == 4 and trace.output()[-2:] == [END, EOS]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beams", [1, 4])
def test_no_three_tokens_stand_twice_in_a_sentence_and_the_one_before(seed, beams):
    target = tiny_models.make("forms", seed)
    tokens, prompt = topic_tokens(target), tiny_models.tokenizer()("ab\nc")["input_ids"]
    trace = run(target, prompt, 80, num_beams=beams, forbid="end")
    text, rows = [*prompt, *trace.output()], [[]]
    for token in text:
        if token in tokens.ids.values() or token in target.eos:
            rows.append([])
        else:
            rows[-1].append(token)
    for before, row in zip([[], *rows], rows, strict=False):
        grams = [tuple(r[i : i + 3]) for r in (before, row) for i in range(len(r) - 2)]
        own = {tuple(row[i : i + 3]) for i in range(len(row) - 2)}
        assert all(grams.count(gram) == 1 for gram in own)


def test_without_the_constraint_it_may_repeat():
    def loop(text):
        row = [0.01] * len(WORDS)
        row[{A: B, B: C}.get(text[-1], A)] = 0.9
        return [p / sum(row) for p in row]

    target = TableModel(loop, len(WORDS), frozenset([EOS]), words=WORDS)
    assert run(target, (A,), 9, no_repeats=False).output() == [B, C, A] * 3
    assert run(target, (A,), 9).output()[:5] != [B, C, A, B, C]


def test_a_model_or_topic_that_is_not_there_is_refused_with_a_sentence(tiny_model):
    with pytest.raises(ValueError, match=r"has no topic tokens; choose one .* llama-tiny-summaries\.$"):
        run(tiny_model("llama"), (1,))
    with pytest.raises(ValueError, match=r"has no topic 't7'; it has: t0 t1 t2 end\.$"):
        run(model(), plan="t1 t7")


def test_names_of_topics_and_sentences_of_texts():
    assert typed_topic_tokens("t3 <t1>,end") == ["<t3>", "<t1>", "<end>"] and typed_topic_tokens(" ") == []
    text = 'He saw Mr. Fox. "Hi!" he said.\n\n"No." Then he ran'
    assert sentences(text) == ["He saw Mr. Fox.", ' "Hi!" he said.', '\n\n"No."', " Then he ran"]
    assert "".join(sentences(text)) == text and sentences("") == []


def test_a_sentence_has_the_topic_of_its_words():
    topics = Topics([{"garden": 2.0, "flowers": 1.0}, {"kitchen": 2.5}])
    assert topics.token("She saw the garden, full of flowers.") == "<t0>"
    assert topics.token("The kitchen behind the garden.") == "<t1>"
    assert topics.token("Kitchen Garden.") == "<t9>"  # names tell nothing
