"""FastCoT: the exact part is greedy's, without a window it is a truncated text, and what is read is said."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.parallel.fastcot import QUESTIONS
from decoders.trace.events import Commit, Forward, Note, Verdict
from tests.helpers.deep_models import PROMPT, deep, run

QUESTION = "So the answer is"


@pytest.fixture(scope="module")
def model():
    return deep(layers=2)


def asked(model, text: list[int]) -> list[int]:
    return model.encode_after([*PROMPT, *text], QUESTIONS[QUESTION])


@pytest.mark.parametrize("first_guess", ["repeat", "prompt", "pad"])
@pytest.mark.parametrize("size", [0, 1, 8])
def test_with_passes_enough_the_text_is_greedys(model, first_guess, size):
    parameters = {"passes": 512, "block_size": size, "first_guess": first_guess}
    found = run("fastcot", model, parameters, tokens=30)
    assert found.output() == run("greedy", model, tokens=30).output()
    assert not any(s.of(Note) or s.of(Verdict) and s.of(Verdict)[0].status == "forced" for s in found.steps)
    assert len(found.steps) <= len(found.output())


def test_without_a_window_the_reasoning_is_cut_after_so_many_tokens(model):
    found = run("fastcot", model, {"block_size": 0, "passes": 5}, tokens=40).output()
    greedy = run("greedy", model, tokens=40).output()
    question = asked(model, greedy[:5])
    assert found[: 5 + len(question)] == [*greedy[:5], *question]
    begin = [*PROMPT, *found[: 5 + len(question)]]
    rest = Lane("greedy", begin, {"target": model}, limits=Limits(40 - 5 - len(question))).run().output()
    assert found[5 + len(question) :] == rest


@pytest.mark.parametrize("glance", [True, False])
@pytest.mark.parametrize("passes", [1, 4, 9])
def test_exact_tokens_then_guesses_then_the_question(model, glance, passes):
    parameters = {"block_size": 6, "passes": passes, "glance": glance}
    trace = run("fastcot", model, parameters, tokens=60)
    found, greedy = trace.output(), run("greedy", model, tokens=60).output()
    exact = sum(len(c.nodes) for s in trace.steps[:passes] for c in s.of(Commit))
    assert exact >= passes and found[:exact] == greedy[:exact]
    step = trace.steps[passes]
    forced = [v for v in step.of(Verdict) if v.status == "forced"]
    taken = sum("guess" in v.reason for v in forced)
    assert taken == 0 if not glance else 0 < taken <= 6
    said = "none of the guesses" if not glance else f"{taken} guesses"
    sure = "1 token is exact" if exact == 1 else f"{exact} tokens are exact"
    assert step.of(Note)[0].text.startswith(f"The answer is requested: {sure}, and {said}")
    question = asked(model, found[: exact + taken])
    assert found[exact + taken : exact + len(forced)] == question and len(forced) == taken + len(question)
    assert all(f.kind != "lens" for s in trace.steps for f in s.of(Forward))
    assert len(trace.steps[: passes + 1]) == passes + 1


def test_the_last_pass_s_own_answers_are_the_glance(model):
    """By transformers' own forward over the text and the guesses, as Jacobi has them."""
    trace = run("fastcot", model, {"block_size": 3, "passes": 1}, tokens=40)
    exact = len(trace.steps[0].of(Commit)[0].nodes)
    text = model.model(torch.tensor([[*PROMPT, *[PROMPT[-1]] * 3]])).logits[0]
    outputs = text[len(PROMPT) - 1 :].argmax(-1).tolist()
    assert exact < 4 and trace.output()[exact:4] == outputs[exact:]


def test_a_text_that_comes_to_the_question_itself_is_not_asked_again(model, monkeypatch):
    greedy = run("greedy", model, tokens=60).output()
    letters = [model.bytes_of(t).decode("latin-1") for t in greedy]
    place = next(i for i, x in enumerate(letters) if x.isascii() and x.isalnum() and x not in letters[:i])
    monkeypatch.setitem(QUESTIONS, QUESTION, letters[place])
    for passes, again in ((place, True), (place + 1, False)):
        found = run("fastcot", model, {"passes": passes, "block_size": 0}, tokens=60)
        assert any(s.of(Note) for s in found.steps) == again
    assert found.output() == greedy
