"""Assisted generation and prompt lookup by `generate`, against our lanes and transformers' own numbers."""

import pytest
import torch
from transformers.generation import utils

from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.trace.events import Commit, Depend, Distribution, Propose, Verdict
from tests.helpers.watched_calls import PROMPT, assistant, both, told

KINDS = (Propose, Verdict, Commit, Distribution)


@pytest.fixture(scope="module")
def draft(tiny_model):
    return assistant(tiny_model())


def test_greedy_assisted_generation_leaves_the_trace_of_our_lane(tiny_model, draft):
    model = tiny_model()
    models = {"target": model, "draft": LoadedModel("near", draft, model.tokenizer)}
    run, _ = both(model, assistant_model=draft, do_sample=False)
    parameters = {"num_assistant_tokens": 3}
    lane = Lane("speculative", model.encode(PROMPT), models, parameters, limits=Limits(16)).run()
    assert run.trace.costs.accepted > 3
    assert run.trace.costs.metrics() == lane.costs.metrics()
    assert told(run.trace, Verdict, Commit) == told(lane, Verdict, Commit)
    assert run.trace.badge == lane.badge == "lossless: equal to greedy"
    assert run.trace.parameters == lane.parameters


def test_sampled_rounds_have_the_numbers_of_transformers(tiny_model, draft, monkeypatch):
    rounds, draws = [], []
    sampling, rand_like = utils._speculative_sampling, torch.rand_like

    def heard(ids, candidate_logits, length, new_logits, *args, **more):
        answer = sampling(ids, candidate_logits, length, new_logits, *args, **more)
        rounds.append((ids[0, -length:], candidate_logits[0].softmax(-1), new_logits[0].softmax(-1), answer))
        return answer

    def drawn(*args, **more):
        draws.append(rand_like(*args, **more))
        return draws[-1]

    monkeypatch.setattr(utils, "_speculative_sampling", heard)
    monkeypatch.setattr(torch, "rand_like", drawn)
    options = {"do_sample": True, "temperature": 1.3, "top_k": 60, "max_new_tokens": 40}
    run, _ = both(tiny_model(), seed=5, assistant_model=draft, **options)
    rounds, draws = rounds[len(rounds) // 2 :], draws[len(draws) // 2 :]  # those of the watched call
    told_rounds = [step for step in run.trace.steps if any(e.source == "draft" for e in step.of(Propose))]
    assert len(rounds) == len(draws) == len(told_rounds) > 3
    seen = set()
    for (tokens, q, p, (written, matches)), us, step in zip(rounds, draws, told_rounds, strict=True):
        drafted = [e.node for e in step.of(Propose) if e.source == "draft"]
        verdicts = {v.node: v for v in step.of(Verdict)}
        assert [e.token for e in step.of(Propose) if e.source == "draft"] == tokens.tolist()
        for place, node in enumerate(drafted[: int(matches) + 1]):
            verdict, token = verdicts[node], tokens[place]
            assert verdict.p == pytest.approx(float(p[place, token]), rel=1e-5)
            assert verdict.q == pytest.approx(float(q[place, token]), rel=1e-5)
            assert verdict.u == float(us[place])
            seen.add(verdict.status)
        accepted = [verdicts[n].status for n in drafted].count("accepted")
        assert accepted == min(int(matches), len(drafted)) or written.shape[1] == accepted
        own = [e.token for e in step.of(Propose) if e.source == "target"]
        assert [*tokens[:accepted].tolist(), *own] == written[0].tolist()[: accepted + len(own)]
    assert seen == {"accepted", "rejected"}
    assert run.trace.badge == "exact in distribution"


def test_greedy_prompt_lookup_copies_what_it_says(tiny_model):
    model, text = tiny_model(), "a b a b a b a b"
    run, _ = both(model, text, prompt_lookup_num_tokens=3, do_sample=False, max_new_tokens=24)
    lane = Lane(
        "prompt_lookup",
        model.encode(text),
        {"target": model},
        {"prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 2},
        limits=Limits(24),
    ).run()
    links = [e for s in run.trace.steps for e in s.of(Depend)]
    index = run.trace.index()
    copied = [e for e in links if e.kind == "copy"]
    assert copied and all(index.token[e.source] == index.token[e.target] for e in links)
    assert told(run.trace, Verdict, Commit) == told(lane, Verdict, Commit)
    assert run.trace.costs.metrics() == lane.costs.metrics()


def test_sampled_prompt_lookup_names_what_the_target_drew(tiny_model):
    run, _ = both(tiny_model(), "a b a b a b a b", prompt_lookup_num_tokens=2, do_sample=True)
    tests = [v for s in run.trace.steps for v in s.of(Verdict) if v.status in ("accepted", "rejected")]
    assert tests and all(v.q is None and 0 <= v.p <= 1 for v in tests)
    assert run.trace.badge == "exact because drafts are deterministic"


def test_a_relaxed_acceptance_is_told_with_its_own_probability(tiny_model, draft):
    more = {"assistant_model": draft, "do_sample": True, "assistant_ensemble_weight": 0.5}
    run, _ = both(tiny_model(), **more)
    tests = [v for s in run.trace.steps for v in s.of(Verdict) if v.u is not None]
    assert run.trace.badge == "relaxed" and tests
    for test in tests:
        assert test.passes == pytest.approx(min(1.0, 0.5 + 0.5 * test.p / test.q))


def test_a_model_that_drafts_with_its_own_layers_pays_for_them(tiny_model):
    run, _ = both(tiny_model(), assistant_early_exit=1, do_sample=False)
    totals = run.trace.costs.totals()
    drafted, verified = (
        [e for s in run.trace.steps for e in s.events if getattr(e, "kind", "") == kind]
        for kind in ("draft", "verify")
    )
    assert totals["target_forwards"] == len(drafted) / 2 + len(verified)
    assert {forward.scope for forward in drafted} == {"layers 1 of 2"}


def test_a_draft_with_another_tokenizer_has_no_q(tiny_model):
    model, other = tiny_model(), tiny_model("forms", 1)
    tokenizers = {"tokenizer": model.tokenizer, "assistant_tokenizer": other.tokenizer}
    run, _ = both(model, assistant_model=other.model, do_sample=False, **tokenizers)
    verdicts = [v for s in run.trace.steps for v in s.of(Verdict)]
    assert run.trace.costs.proposed and all(v.q is None for v in verdicts)
    assert run.trace.costs.draft_forwards > 0
