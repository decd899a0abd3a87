"""A model's own generation config counts as in `generate`: the text, the notes, the badge and the switch."""

import pytest
import torch

from decoders import model_defaults
from decoders.lane import Lane, Limits
from decoders.model_defaults import settings_of
from decoders.models import loading
from decoders.models.table_model import TableModel
from decoders.trace.events import Note
from decoders.trace.trace import from_json
from tests.helpers import tiny_models

QWEN = {"repetition_penalty": 1.3, "temperature": 0.7, "top_p": 0.8, "top_k": 20}  # as Qwen2.5
PROMPT = [40, 41, 42, 40, 41]
EQUAL = {  # strategies that write what `generate` or greedy decoding writes, and how they are asked to
    "greedy": {},
    "sample": {"temperature": 0.0},
    "coupling": {"temperature": 0.0},
    "momentum": {"alpha": 0.0},
    "fsd": {"alpha": 0.0},
    "adadec": {"lookahead": 0},
    "jacobi": {},
    "speculative": {},
    "speculative_tree": {},
    "prompt_lookup": {},
    "eqspec": {},
    "bass": {},
    "lookahead": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model saved with such a generation config."""
    made, where = tiny_models.make("llama", seed=3), tmp_path_factory.mktemp("qwen")
    made.model.generation_config.update(**QWEN, do_sample=True, bad_words_ids=[[7], [40, 41]])
    made.model.save_pretrained(where)
    made.tokenizer.save_pretrained(where)
    return where


@pytest.fixture(scope="module")
def target(folder):
    return loading.load(str(folder), "cpu")


def run(strategy, target, parameters=None, new_tokens=14):
    both = {"target": target, "draft": tiny_models.make("llama", seed=1)}
    return Lane(strategy, PROMPT, both, parameters, limits=Limits(max_new_tokens=new_tokens)).run()


def generated(target, new_tokens=14, **asked) -> list[int]:
    ids = torch.tensor([PROMPT])
    asked = {"do_sample": False, "max_new_tokens": new_tokens, "attention_mask": torch.ones_like(ids)} | asked
    return tiny_models.cut(target.model.generate(ids, **asked)[0, len(PROMPT) :].tolist(), target)


@pytest.mark.parametrize("strategy", EQUAL)
def test_what_promises_greedy_text_equals_generate_on_a_model_with_settings(strategy, target):
    trace = run(strategy, target, EQUAL[strategy])
    assert trace.output() == generated(target)
    assert trace.output() != generated(target, repetition_penalty=1.0)  # or nothing was tested
    assert trace.model_defaults == {"repetition_penalty": 1.3, "bad_words_ids": [[7], [40, 41]]}


def test_beam_search_and_guidance_equal_generate_too(target):
    assert run("beam", target, {"num_beams": 3}).output() == generated(target, num_beams=3)
    trace = run("guidance", target, {"guidance_scale": 1.5})
    assert trace.output() == generated(target, guidance_scale=1.5)
    assert trace.badge == "equal to generate"


def test_sampling_draws_from_what_generate_would_draw_from(target):
    trace = run("sample", target)
    assert trace.model_defaults.items() >= QWEN.items()
    assert run("sample", target, {**QWEN, "bad_words_ids": "#7, #40 #41"[:2]}).model_defaults.keys() == set()


def test_a_parameter_that_is_set_wins_and_the_switch_leaves_all_out(target):
    assert run("greedy", target, {"repetition_penalty": 1.1}).output() == generated(
        target, repetition_penalty=1.1
    )
    off = run("greedy", target, {"model_defaults": False})
    raw = generated(target, repetition_penalty=1.0, bad_words_ids=[[258]])
    assert off.output() == raw and off.model_defaults == {}
    assert off.badge == "deterministic"
    (note,) = off.steps[0].of(Note)
    assert "repetition_penalty 1.3" in note.text and "another text" in note.text
    assert "temperature" not in note.text  # nothing is drawn


def test_the_trace_says_which_settings_count_and_keeps_it_in_its_file(target):
    trace = run("greedy", target)
    (note,) = trace.steps[0].of(Note)
    assert "repetition_penalty 1.3" in note.text and "model_defaults" in note.text
    again = from_json(trace.to_json())
    assert again.shaping["repetition_penalty"] == 1.3 and again.parameters["repetition_penalty"] == 1.0
    assert "repetition_penalty 1.3" in target.facts()["generation settings"]


def test_strategies_that_read_the_raw_model_say_so(target):
    trace = run("autodeco", target, {"predict": "neither", "temperature": 0.0})
    assert trace.badge == "deterministic"
    assert any("raw model" in note.text for note in trace.steps[0].of(Note))


def test_ways_of_decoding_that_generate_would_take_from_the_model_are_named():
    model = tiny_models.make("llama", seed=3)
    model.model.generation_config.update(num_beams=4, stop_strings=["the"])
    trace = run("greedy", model)
    (note,) = trace.steps[0].of(Note)
    assert "the model's num_beams 4, stop_strings ['the'], which this lane does not" in note.text
    assert trace.badge == "deterministic"
    own = run("greedy", model, {"stop_strings": "xyz"}).steps[0].of(Note)
    assert "stop_strings" not in own[0].text
    assert run("beam", model, {"num_beams": 3, "stop_strings": "xyz"}).badge == "equal to generate"


def test_a_model_without_settings_changes_nothing():
    model = tiny_models.make("llama", seed=3)
    trace = run("greedy", model)
    assert model.generation == {} and trace.steps[0].of(Note) == []
    assert "model_defaults" not in trace.to_json() and trace.badge == "equal to generate"


def test_speculation_keeps_the_law_of_sampling_with_the_settings_of_the_model():
    """p and q alike go through the target's processors: the law of the output is that of sampling."""
    from decoders.chooser import Exhaustive

    def row(past):
        return (0.5, 0.3, 0.2) if past[-1] else (0.2, 0.2, 0.6)

    target = TableModel(row, 3, generation={"repetition_penalty": 2.0, "temperature": 0.7, "top_k": 2})
    draft = TableModel(lambda past: (0.4, 0.4, 0.2), 3)

    def law(strategy, **parameters):
        def text(chooser):
            lane = Lane(
                strategy,
                [1, 0],
                {"target": target, "draft": draft},
                parameters,
                limits=Limits(max_new_tokens=3),
                chooser=chooser,
            )
            return tuple(lane.run().output())

        return Exhaustive().distribution(text)

    ours, want = law("speculative", temperature=1.0, num_assistant_tokens=2), law("sample")
    assert ours.keys() == want.keys()
    assert all(abs(ours[text] - want[text]) < 1e-12 for text in want)
    raw = law("sample", model_defaults=False)
    assert raw.keys() != want.keys()  # top_k 2 removed a token


def test_settings_are_plain_data_without_what_changes_nothing():
    from transformers import GenerationConfig

    config = GenerationConfig(
        repetition_penalty=1.0,
        top_k=50,
        sequence_bias=[[[1, 2], -3.0]],
        guidance_scale=1.5,
        exponential_decay_length_penalty=(3, 1.1),
        num_beams=4,
    )
    assert settings_of(config) == {
        "num_beams": 4,
        "top_k": 50,
        "sequence_bias": [[[1, 2], -3.0]],
        "guidance_scale": 1.5,
        "exponential_decay_length_penalty": [3, 1.1],
    }
    said = model_defaults.sentences({"model_defaults": True}, {"guidance_scale": 1.5})
    assert said == ["generate would also use the model's guidance_scale 1.5, which this lane does not."]
