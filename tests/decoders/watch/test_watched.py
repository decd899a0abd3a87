"""What `watch` promises whatever the mode: it changes nothing, goes away, and says what it cannot follow."""

import queue
import subprocess
import sys
import threading

import pytest
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    TextIteratorStreamer,
)
from transformers.generation.streamers import BaseStreamer

from decoders import watch
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.trace import check_trace, malformed
from decoders.watch import seams
from decoders.watch.next_tokens import NextTokens
from tests.helpers.watched_calls import PROMPT, assistant, both, encoded


@pytest.fixture
def model(tiny_model):
    """A model that is as it was when the test is over."""
    loaded = tiny_model()
    before = dict(loaded.model.__dict__)
    yield loaded
    assert loaded.model.__dict__ == before
    assert not loaded.model._forward_hooks and not loaded.model._forward_pre_hooks


class Breaks(LogitsProcessor):
    """Raises once the text has this many tokens."""

    def __init__(self, length: int):
        self.length = length

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] >= self.length:
            raise RuntimeError("out of luck")
        return scores


class Tokens(BaseStreamer):
    """Keeps what it is given."""

    def __init__(self):
        self.pieces, self.ended = [], False

    def put(self, value):
        self.pieces += value.flatten().tolist()

    def end(self):
        self.ended = True


class Longer(StoppingCriteria):
    """Ends texts of this many tokens, and counts how often it is asked."""

    def __init__(self, length: int):
        self.length, self.asked = length, 0

    def __call__(self, input_ids, scores, **kwargs):
        self.asked += 1
        return torch.full((len(input_ids),), input_ids.shape[1] >= self.length)


def test_nothing_of_transformers_is_loaded_before_it_is_called():
    code = "import sys; from decoders import watch; assert callable(watch); print(sorted(sys.modules))"
    names = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "'torch'" not in names and "'transformers'" not in names and "'decoders.watch'" in names


def test_several_calls_leave_several_traces(model):
    inputs = encoded(model, [PROMPT])
    with watch(model.model, model.tokenizer) as run:
        with pytest.raises(ValueError, match="Nothing was recorded; call the model's generate inside"):
            _ = run.trace
        model.model.generate(**inputs, max_new_tokens=3)
        model.model.generate(**inputs, max_new_tokens=3, num_beams=2)
    model.model.generate(**inputs, max_new_tokens=3)  # no longer watched
    assert [found.strategy for found in run.traces] == ["greedy", "beam"]
    assert run.trace is run.traces[-1]
    assert run.trace.models == {"target": "LlamaForCausalLM"}


def test_without_a_tokenizer_tokens_show_their_ids(model):
    with watch(model.model) as run:
        model.model.generate(**encoded(model, [PROMPT]), max_new_tokens=2)
    assert run.trace.text() == "".join(f"‹{token}›" for token in run.trace.output())


@pytest.mark.parametrize("mode", ["greedy", "beams", "assisted"])
def test_what_raises_leaves_the_trace_up_to_there(model, mode):
    inputs = encoded(model, [PROMPT])
    length = inputs["input_ids"].shape[1]
    more = {"greedy": {}, "beams": {"num_beams": 3}, "assisted": {"assistant_model": assistant(model)}}[mode]
    breaks = LogitsProcessorList([Breaks(length + 4)])
    with pytest.raises(RuntimeError, match="^out of luck$"), watch(model.model, model.tokenizer) as run:
        model.model.generate(**inputs, max_new_tokens=9, do_sample=False, logits_processor=breaks, **more)
    found = run.trace
    assert found.ended == "generate raised RuntimeError: out of luck."
    assert malformed((e for s in found.steps for e in s.events), length) is None
    check_trace(found.to_json())
    assert found.costs.target_forwards >= 2
    if mode == "assisted":
        drafted = {e.node for s in found.steps for e in s.of(Propose) if e.source == "draft"}
        assert drafted == {v.node for s in found.steps for v in s.of(Verdict)} & drafted


def test_a_model_is_watched_once(model):
    with watch(model.model) as run:
        other, sentence = watch(model.model), "This model is watched already; leave the with statement"
        with pytest.raises(ValueError, match=sentence), other:
            pass
        with pytest.raises(ValueError, match="This model is watched already"), run:
            pass
        model.model.generate(**encoded(model, [PROMPT]), max_new_tokens=2)
    assert len(run.traces) == 1


def test_calls_of_other_threads_are_not_mixed_in(model):
    inputs, others = encoded(model, [PROMPT]), queue.Queue()
    alone = model.model.generate(**inputs, max_new_tokens=8, do_sample=False)

    class Asks(LogitsProcessor):
        """Lets another thread generate in the middle of this call."""

        def __call__(self, input_ids, scores):
            def call():
                others.put(model.model.generate(**inputs, max_new_tokens=8, do_sample=False))

            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
            return scores

    with watch(model.model, model.tokenizer) as run:
        own = LogitsProcessorList([Asks()])
        mine = model.model.generate(**inputs, max_new_tokens=8, do_sample=False, logits_processor=own)
    assert torch.equal(mine, alone) and others.qsize() == len(run.trace.steps)
    assert all(torch.equal(others.get(), alone) for _ in run.trace.steps)
    assert len(run.traces) == 1 and run.trace.costs.target_forwards == len(run.trace.steps)


def test_streamers_and_stopping_criteria_go_on_to_work(model):
    inputs = encoded(model, [PROMPT])
    for more in ({}, {"assistant_model": assistant(model)}, {"prompt_lookup_num_tokens": 2}):
        streamers = [Tokens(), Tokens()]
        stops = [Longer(inputs["input_ids"].shape[1] + 5) for _ in range(2)]

        def call(number, more=more, streamers=streamers, stops=stops):
            own = {"streamer": streamers[number], "stopping_criteria": StoppingCriteriaList([stops[number]])}
            return model.model.generate(**inputs, max_new_tokens=12, do_sample=False, **own, **more)

        alone = call(0)
        with watch(model.model, model.tokenizer) as run:
            watched = call(1)
        assert torch.equal(alone, watched) and streamers[0].pieces == streamers[1].pieces
        assert streamers[1].pieces == run.trace.prompt + run.trace.output()
        assert streamers[1].ended and stops[0].asked == stops[1].asked > 1
        assert run.trace.ended == "A stopping criterion of generate ended the text."


def test_a_text_can_be_streamed_from_a_thread_that_watches(model):
    streamer, runs = TextIteratorStreamer(model.tokenizer, skip_prompt=True), queue.Queue()

    def call():
        with watch(model.model, model.tokenizer) as run:
            model.model.generate(**encoded(model, [PROMPT]), max_new_tokens=6, streamer=streamer)
        runs.put(run)

    thread = threading.Thread(target=call)
    thread.start()
    said = "".join(streamer)
    thread.join()
    assert said == model.tokenizer.decode(runs.get().trace.output())


def test_a_generation_config_is_followed(model):
    config = GenerationConfig(
        max_new_tokens=5,
        do_sample=True,
        top_k=7,
        temperature=0.5,
        eos_token_id=None,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    run, _ = both(model, generation_config=config, max_new_tokens=5)
    assert (run.trace.parameters["top_k"], run.trace.parameters["temperature"]) == (7, 0.5)
    assert run.trace.ended == "Reached max_new_tokens = 5." or run.trace.output()[-1] in model.eos


@pytest.mark.parametrize("name", ["custom_generate", "inputs_embeds"])
def test_what_it_does_not_know_runs_as_it_is_and_is_named(model, name):
    given = encoded(model, [PROMPT])
    if name == "custom_generate":
        given[name] = lambda model, input_ids, **more: input_ids
    else:
        given = {name: model.model.get_input_embeddings()(given["input_ids"])}
    alone = model.model.generate(**given, max_new_tokens=3, do_sample=False)
    sentence = f"watch does not know {name}: this call ran unchanged"
    with pytest.warns(UserWarning, match=sentence), watch(model.model, model.tokenizer) as run:
        watched = model.model.generate(**given, max_new_tokens=3, do_sample=False)
    assert torch.equal(alone, watched) and run.traces == []


def test_a_refusal_of_generate_stays_its_own(model):
    with watch(model.model) as run, pytest.raises(ValueError, match="trust_remote_code"):
        model.model.generate(**encoded(model, [PROMPT]), max_new_tokens=3, dola_layers="low")
    with watch(model.model) as run, pytest.raises(TypeError):
        model.model.generate(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
    assert run.traces == []


def test_a_mistake_of_its_own_ends_the_record_and_not_the_call(model, monkeypatch):
    inputs = encoded(model, [PROMPT])
    alone = model.model.generate(**inputs, max_new_tokens=6, do_sample=False)
    times, real = iter([None, None, ZeroDivisionError("none left")]), NextTokens.chosen

    def chosen(self, given, done):
        if error := next(times):
            raise error
        real(self, given, done)

    monkeypatch.setattr(NextTokens, "chosen", chosen)
    sentence = r"watch could not follow this call \(ZeroDivisionError: none left\)"
    with pytest.warns(UserWarning, match=sentence), watch(model.model, model.tokenizer) as run:
        watched = model.model.generate(**inputs, max_new_tokens=6, do_sample=False)
    assert torch.equal(alone, watched)
    assert run.trace.ended.startswith("watch could not follow this call")
    assert sum(len(c.nodes) for s in run.trace.steps for c in s.of(Commit)) == 2


def test_what_cannot_be_watched_is_refused_with_a_sentence(model, monkeypatch):
    with pytest.raises(ValueError, match="A TinyModel cannot be watched; give the model of transformers"):
        watch(model)
    monkeypatch.setattr(seams, "SEAMS", ("_get_logits_processor", "_make_tokens"))
    with pytest.raises(ValueError, match=r"watch knows generate of transformers .* has no _make_tokens\."):
        watch(model.model)
