"""Stop strings, own end tokens and a whole length end a text where `generate` ends it."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models import loading
from decoders.stopping import stop_strings_of
from tests.helpers import tiny_models

PROMPT = [40, 41, 42, 40, 41]


@pytest.fixture(scope="module")
def model():
    return tiny_models.make("llama", seed=3)


def run(model, strategy="greedy", new_tokens=20, **parameters):
    return Lane(strategy, PROMPT, {"target": model}, parameters, limits=Limits(new_tokens)).run()


def generated(model, new_tokens=20, **asked) -> list[int]:
    ids = torch.tensor([PROMPT])
    asked = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": new_tokens} | asked
    made = model.model.generate(ids, **asked)[0, len(PROMPT) :].tolist()
    return made


@pytest.mark.parametrize("strategy, asked", [("greedy", {}), ("beam", {"num_beams": 3})])
@pytest.mark.parametrize("at", [0, 9, 14])
def test_a_stop_string_ends_the_text_with_the_token_that_it_ends_in(strategy, asked, at):
    shipped = loading.load("llama-tiny", "cpu")
    prompt = shipped.encode("Once upon a time there was")
    whole = Lane(strategy, prompt, {"target": shipped}, asked, limits=Limits(16)).run()
    stop = (" was" + whole.text())[
        at : at + 5
    ]  # from 0 on it begins in the prompt; others end inside a token
    asked_too = asked | {"stop_strings": f'"{stop}"'}
    trace = Lane(strategy, prompt, {"target": shipped}, asked_too, limits=Limits(16)).run()
    ids = torch.tensor([prompt])
    made = shipped.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=16,
        stop_strings=[stop],
        tokenizer=shipped.tokenizer,
        **asked,
    )
    assert trace.output() == tiny_models.cut(made[0, len(prompt) :].tolist(), shipped)
    if strategy == "greedy":
        assert trace.ended == "The model wrote a stop string."
        assert len(trace.output()) < len(whole.output())


def test_how_stop_strings_are_typed():
    assert stop_strings_of({"stop_strings": r'The end, "\n\n", " a,b"'}) == (b"The end", b"\n\n", b" a,b")
    assert stop_strings_of({}) == ()


@pytest.mark.parametrize("strategy, asked", [("greedy", {}), ("beam", {"num_beams": 3})])
def test_own_end_tokens_take_the_place_of_the_models(model, strategy, asked):
    end = run(model).output()[6]
    trace = run(model, strategy, eos_token_id=f"#{end}", **asked)
    want = generated(model, eos_token_id=end, pad_token_id=0, **asked)
    want = want[: want.index(end) + 1] if end in want else want
    assert trace.output() == want
    assert strategy == "beam" or trace.ended == "The model wrote its end-of-text token."


def test_processors_that_know_the_end_know_these_ends(model):
    end = run(model).output()[2]
    trace = run(model, eos_token_id=f"#{end}", min_new_tokens=8)
    want = generated(model, eos_token_id=end, min_new_tokens=8, pad_token_id=0)
    assert trace.output() == (want[: want.index(end) + 1] if end in want else want)
    assert end not in trace.output()[:8]


@pytest.mark.parametrize("strategy, asked", [("greedy", {}), ("beam", {"num_beams": 3})])
def test_the_forced_end_and_the_shortest_length_are_those_of_generate(model, strategy, asked):
    for more in ({"forced_eos_token_id": 258}, {"min_length": 12}, {"renormalize_logits": True}):
        typed = {k: f"#{v}" if k.startswith("forced") else v for k, v in more.items()}
        trace = run(model, strategy, 9, **asked, **typed)
        assert trace.output() == tiny_models.cut(generated(model, 9, **asked, **more), model)
        assert "forced_eos_token_id" not in more or trace.output()[-1] == 258


def test_max_length_counts_the_prompt(model):
    trace = run(model, max_length=9)
    assert len(trace.output()) == 4 and trace.output() == run(model).output()[:4]
    assert trace.ended == "Reached max_length = 9, prompt and text together."
    assert len(run(model, new_tokens=2, max_length=9).output()) == 2
    with pytest.raises(ValueError, match="max_length is 5, but the prompt has 5 tokens; allow at least 6"):
        run(model, max_length=5)
