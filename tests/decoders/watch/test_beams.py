"""Beam search by `generate`, against our own beam search and transformers' own scores."""

import pytest
import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from decoders import watch
from decoders.lane import Lane, Limits
from decoders.search.beam.hypotheses import returned
from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.scores import Score
from tests.helpers.watched_calls import PROMPT, both, encoded, told

SEARCHES = [
    {"num_beams": 3},
    {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "num_return_sequences": 3},
    {"num_beams": 2, "length_penalty": -1.0, "early_stopping": "never", "repetition_penalty": 1.3},
]


@pytest.mark.parametrize("options", SEARCHES, ids=str)
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_both_draw_the_same_tree(tiny_model, options, kind):
    model = tiny_model(kind)
    ours = options | {"early_stopping": str(options.get("early_stopping", False)).lower()}
    run, _ = both(model, do_sample=False, **options)
    lane = Lane("beam", model.encode(PROMPT), {"target": model}, ours, limits=Limits(16)).run()
    kinds = (Propose, Verdict, Score, Commit, Distribution)
    assert told(run.trace, *kinds) == told(lane, *kinds)
    assert (run.trace.parameters, run.trace.ended) == (lane.parameters, lane.ended)


@pytest.mark.parametrize("sampled", [False, True])
def test_the_finished_texts_have_the_scores_of_generate(tiny_model, sampled):
    model = tiny_model()
    ids, options = encoded(model, [PROMPT]), {"num_beams": 4, "num_return_sequences": 4, "do_sample": sampled}
    more = {"return_dict_in_generate": True, "output_scores": True, "max_new_tokens": 12, "temperature": 1.5}
    torch.manual_seed(0)
    with watch(model.model, model.tokenizer) as run:
        answer = model.model.generate(**ids, **options, **more)
    texts = returned(run.trace)
    assert [score for _, score in texts] == pytest.approx(answer.sequences_scores.tolist(), abs=1e-5)
    for (tokens, _), whole in zip(texts, answer.sequences.tolist(), strict=True):
        assert tokens == whole[len(run.trace.prompt) :][: len(tokens)]


def test_beam_sampling_draws_as_it_would_alone(tiny_model):
    run, _ = both(tiny_model(), num_beams=3, do_sample=True, temperature=1.5, top_k=20)
    assert run.trace.badge == "sampled" and run.trace.parameters["do_sample"] is True
    offers = run.trace.steps[1].of(Distribution)
    assert {(e.view, e.level) for e in offers} == {
        ("target", None),
        ("processed", "temperature"),
        ("processed", None),
    }


@pytest.mark.parametrize("early", [False, True])
def test_each_prompt_of_a_batch_has_a_tree_of_its_own(tiny_model, early):
    model, prompts = tiny_model(), ["the cat sat on", "a mat", PROMPT]
    options = {"num_beams": 3, "early_stopping": early, "do_sample": False}
    run, _ = both(model, prompts, **options)
    for found, prompt in zip(run.traces, prompts, strict=True):
        alone, _ = both(model, prompt, **options)
        kinds = (Propose, Verdict, Score, Commit)
        assert told(found, *kinds) == told(alone.trace, *kinds)


class Fifths(StoppingCriteria):
    """Ends a text at every token whose id five divides."""

    def __call__(self, input_ids, scores, **kwargs):
        return input_ids[:, -1] % 5 == 0


def test_a_stopping_criterion_finishes_a_text(tiny_model):
    own = StoppingCriteriaList([Fifths()])
    inputs, model = encoded(tiny_model(), [PROMPT]), tiny_model().model
    options = {"num_beams": 3, "do_sample": False, "max_new_tokens": 12, "stopping_criteria": own}
    with watch(model) as run:
        texts = model.generate(**inputs, **options)
    ended = [v for s in run.trace.steps for v in s.of(Verdict) if v.status == "finished"]
    token = run.trace.index().token
    assert texts[0, len(run.trace.prompt) :].tolist() == run.trace.output()
    stopped = [v for v in ended if v.reason == "a stopping criterion"]
    assert stopped and all(token[v.node] % 5 == 0 for v in stopped)
    other = {v.reason for v in ended if v not in stopped}
    assert other <= {"end of text", "the limit of 12 new tokens"}
