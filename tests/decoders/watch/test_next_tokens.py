"""Greedy decoding and sampling by `generate`, against our own lanes and transformers' own numbers."""

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from decoders.chooser import Draw, Random
from decoders.lane import Lane, Limits
from decoders.trace.events import Commit, Distribution, Forward, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers.watched_calls import PROMPT, both, told

SHAPED = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.01, "typical_p": 0.9}


class Follows(Random):
    """Draws the tokens that someone else drew."""

    def __init__(self, tokens: list[int]):
        super().__init__()
        self.tokens = iter(tokens)

    def categorical(self, weights, tag):
        return Draw(next(self.tokens), None)


class Shifted(LogitsProcessor):
    """A processor of one's own; it writes into what it is given."""

    def __init__(self, token: int):
        self.token = token

    def __call__(self, input_ids, scores):
        scores[:, self.token] += 3.0
        return scores


@pytest.mark.parametrize("options", [{}, {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2}], ids=str)
def test_greedy_leaves_the_trace_of_our_greedy_lane(tiny_model, options):
    model = tiny_model()
    run, _ = both(model, do_sample=False, **options)
    lane = Lane("greedy", model.encode(PROMPT), {"target": model}, options, limits=Limits(16)).run()
    kinds = (Propose, Distribution, Commit, Forward)
    assert told(run.trace, *kinds) == told(lane, *kinds)
    assert (run.trace.strategy, run.trace.badge, run.trace.ended) == (lane.strategy, lane.badge, lane.ended)
    assert run.trace.parameters == lane.parameters


@pytest.mark.parametrize("options", [{"top_k": 0}, {"repetition_penalty": 1.2, **SHAPED}], ids=str)
def test_sampling_has_what_every_processor_left(tiny_model, options):
    model = tiny_model("gpt2")
    run, _ = both(model, do_sample=True, **options)
    lane = Lane(
        "sample",
        model.encode(PROMPT),
        {"target": model},
        options,
        limits=Limits(16),
        chooser=Follows(run.trace.output()),
    ).run()
    kinds = (Distribution, Commit, Forward)
    assert told(run.trace, *kinds) == told(lane, *kinds)
    drawn = [step.pop() | {"fill": "sampled"} for step in told(lane, Propose)]
    assert [step.pop() for step in told(run.trace, Propose)] == drawn
    assert run.trace.parameters == lane.parameters
    assert run.trace.badge == "sampled" and run.trace.seed == 3


def test_a_processor_of_ones_own_is_a_stage(tiny_model):
    model = tiny_model()
    own = LogitsProcessorList([Shifted(40), Shifted(41)])
    run, _ = both(model, do_sample=True, temperature=0.5, top_k=5, logits_processor=own)
    offers = run.trace.steps[0].of(Distribution)
    assert [(e.view, e.level) for e in offers] == [
        ("target", None),
        *(("processed", level) for level in ("Shifted", "Shifted 2", "temperature", None)),
    ]
    logits = model.model(torch.tensor([run.trace.prompt])).logits[0, -1]
    for offer, row in zip(offers, stages(logits), strict=True):
        best = row.log_softmax(-1).topk(5)
        assert [token for token, _ in offer.top[:5]] == best.indices.tolist()
        assert [logprob for _, logprob in offer.top[:5]] == pytest.approx(best.values.tolist(), abs=1e-4)
    assert run.trace.model_defaults == {"logits_processor": "Shifted, Shifted 2"}


def stages(logits: torch.Tensor) -> list[torch.Tensor]:
    """A row of logits [V] and what the processors of the test above make of it, one after the other."""
    rows = [logits.clone()]
    for token in (40, 41):
        rows.append(rows[-1].clone())
        rows[-1][token] += 3.0
    rows.append(rows[-1] / 0.5)
    rows.append(rows[-1].masked_fill(rows[-1] < rows[-1].topk(5).values[-1], -torch.inf))
    return rows


def test_several_texts_of_a_prompt_are_one_trace(tiny_model):
    run, texts = both(tiny_model(), do_sample=True, num_return_sequences=3)
    found = run.trace
    assert len(run.traces) == 1
    ranked = sorted((s for s in found.steps[-1].of(Rank) if s.rank), key=lambda s: s.rank)
    index = found.index()
    for score, text in zip(ranked, texts.tolist(), strict=True):
        own = [index.token[node] for node in index.path(score.node)]
        assert own == text[len(found.prompt) :][: len(own)]
    assert sum(v.status == "finished" for s in found.steps for v in s.of(Verdict)) == 3


def test_each_prompt_of_a_batch_has_the_trace_that_it_has_alone(tiny_model):
    model, prompts = tiny_model(), ["the cat sat on", "a mat", PROMPT]
    run, _ = both(model, prompts, do_sample=False)
    kinds = (Propose, Distribution, Commit, Forward)
    for found, prompt in zip(run.traces, prompts, strict=True):
        alone, _ = both(model, prompt, do_sample=False)
        assert found.prompt == model.encode(prompt)
        assert told(found, *kinds) == told(alone.trace, *kinds)
