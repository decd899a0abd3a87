"""VocabTrim: worked law, the identity, acceptance by vocabulary size, and a head of fewer rows."""

import re

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.trimmed_head import TrimmedHead
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.drafters.trimmed_vocabulary import coverage, most_frequent
from decoders.speculative.methods import vocabtrim
from decoders.testing import distance, events_without_clock, shape_of
from decoders.trace.events import Distribution, Forward, Propose, Verdict
from decoders.trace.scores import Measure
from tests.decoders.speculative.test_lossless_exact import PAIRS, SHAPES, pair
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds

P = (0.5, 0.3, 0.2)


@pytest.fixture
def keeping(monkeypatch):
    """keeping(tokens): these are the draft's vocabulary, whatever a store says."""

    def keep(tokens):
        monkeypatch.setattr(vocabtrim, "calibrated", lambda *_: (list(tokens), 1.0))

    return keep


def tables(p=P, q=P):
    return {"target": TableModel(lambda _: p, len(p)), "draft": TableModel(lambda _: q, len(q))}


CHOSEN = {"num_assistant_tokens": 1, "temperature": 1.0, "keep": 0.5}


def test_worked_law(keeping):
    """q' = (.625, .375, 0): accepted .8; after a rejection the token outside is drawn; .5, .3, .2 in all."""
    keeping([0, 1])
    law = law_of_rounds(Exhaustive(), "vocabtrim", tables(), CHOSEN, 2)
    assert distance(law, exact_distribution(tables()["target"], (0,), 2)) < 1e-12
    verdicts, residuals = [], []
    for seed in range(200):
        trace = Lane("vocabtrim", [0], tables(), CHOSEN, seed, Limits(2)).run()
        events = [event for step in trace.steps for event in step.events]
        verdicts += [e for e in events if isinstance(e, Verdict) and e.status in ("accepted", "rejected")]
        residuals += [e.top for e in events if isinstance(e, Distribution) and e.view == "residual"]
    assert {round(v.q, 9) for v in verdicts} == {0.625, 0.375}
    assert all(v.passes == pytest.approx(0.8) for v in verdicts)
    assert residuals and all([token for token, _ in top][0] == 2 for top in residuals)
    assert all(top[0][1] == pytest.approx(0.0, abs=1e-12) for top in residuals)


@pytest.mark.parametrize("models", PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kept", [[0], [0, 2]])
def test_the_target_keeps_its_law(models, shape, kept, keeping):
    keeping(kept)
    parameters = {"num_assistant_tokens": 2, "keep": 0.5, **SHAPES[shape]}
    law = law_of_rounds(Exhaustive(), "vocabtrim", pair(models), parameters, 3, 1)
    expected = exact_distribution(pair(models)["target"], (0,), 3, shape_of(parameters))
    assert distance(law, expected) < 1e-12


def acceptance(models):
    """Mean acceptance probability of the first drafted tokens."""
    passes = []
    for seed in range(60):
        trace = Lane("vocabtrim", [0], models, CHOSEN, seed, Limits(2)).run()
        passes += [
            v.passes for s in trace.steps for v in s.of(Verdict) if v.status in ("accepted", "rejected")
        ]
    return sum(passes) / len(passes)


def test_acceptance_is_the_targets_mass_inside_and_grows_with_the_vocabulary(keeping):
    p, found = (0.4, 0.3, 0.15, 0.1, 0.05), []
    for size in range(1, 5):
        keeping(range(size))
        found.append(acceptance(tables(p, p)))
        assert found[-1] == pytest.approx(sum(p[:size]))
    assert found == sorted(found)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_the_whole_vocabulary_is_plain_speculative_decoding(temperature):
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    chosen = {"temperature": temperature}
    usual = Lane("speculative", [40, 41, 42], models, chosen, 3, Limits(20)).run()
    whole = Lane("vocabtrim", [40, 41, 42], models, chosen | {"keep": 1.0}, 3, Limits(20)).run()
    own = [
        [e for e in events_without_clock(step) if e["type"] not in ("Note", "Measure")]
        for step in whole.steps
    ]
    assert own == [events_without_clock(step) for step in usual.steps]


def test_a_token_outside_ends_the_greedy_path(keeping):
    """Tokens 1 and 2 in turn are the target's; the draft knows 0 and 1 alone."""
    table = lambda text: (0.1, 0.8, 0.1) if len(text) % 2 else (0.1, 0.1, 0.8)
    models = {"target": TableModel(table, 3), "draft": TableModel(table, 3)}
    keeping([0, 1])
    trace = Lane("vocabtrim", [0], models, {"keep": 0.5, "num_assistant_tokens": 4}, 0, Limits(8)).run()
    assert trace.output() == [1, 2] * 4
    drafted = {e.token for step in trace.steps for e in step.of(Propose) if e.source == "draft"}
    assert drafted <= {0, 1}
    accepted = [sum(v.status == "accepted" for v in step.of(Verdict)) for step in trace.steps]
    assert max(accepted) == 1  # the next one is outside
    gauges = [
        e.total for step in trace.steps for e in step.of(Measure) if e.name == "in the draft's vocabulary"
    ]
    assert gauges == [1.0, 0.0] * 4


def test_the_most_frequent_are_kept_ends_always_and_ties_go_to_the_smaller_id():
    tokens = [5, 5, 5, 9, 9, 2, 7]
    assert most_frequent(tokens, 2) == [5, 9]
    assert most_frequent(tokens, 3) == [2, 5, 9]
    assert most_frequent(tokens, 3, always=[11]) == [5, 9, 11]
    assert coverage(tokens, [5, 9]) == pytest.approx(5 / 7) and coverage([], [1]) == 0.0


def test_what_ends_a_text_can_always_be_drafted():
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    lane = Lane("vocabtrim", [40, 41], models, {"keep": 0.05}, 0, Limits(8))
    lane.advance()
    head = lane.scorers["draft"].head
    assert models["target"].eos <= set(head.tokens.tolist())
    assert len(head.tokens) == round(0.05 * head.vocabulary)
    lane.close()


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_a_trimmed_head_gives_the_models_own_logits_of_its_tokens(kind):
    model = tiny_models.make(kind)
    kept, prompt = [3, 77, 200, 201], [40, 41, 42]
    lanes = {"target": model, "draft": model}
    lane = Lane("speculative", prompt, lanes, {}, 0, Limits(4))
    whole = lane.scorers["draft"].score([2])
    lane.close()
    lane = Lane("speculative", prompt, lanes, {}, 0, Limits(4))
    scorer = lane.scorers["draft"]
    scorer.head = TrimmedHead(model.model, kept)
    few = scorer.score([2])
    outside = torch.ones(few.shape[-1], dtype=torch.bool)
    outside[kept] = False
    assert torch.allclose(few[:, kept], whole[:, kept], atol=1e-4)
    assert bool((few[:, outside] == -torch.inf).all())
    other = Lane("speculative", prompt, lanes, {}, 0, Limits(4))  # shares the prompt, not the head
    assert torch.allclose(other.scorers["draft"].score([2]), whole, atol=1e-4)
    other.close()
    lane.close()


def test_forwards_say_how_many_tokens_were_scored():
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    trace = Lane("vocabtrim", [40, 41], models, {"keep": 0.5}, 0, Limits(8)).run()
    scopes = {e.scope for step in trace.steps for e in step.of(Forward) if e.model == "draft"}
    (scope,) = scopes
    count, of, size, tokens = scope.split()  # tokens that the store never has are not kept
    assert (of, size, tokens) == ("of", str(models["draft"].engine.vocabulary), "tokens")
    assert 1 < int(count) <= round(0.5 * int(size))


def test_where_a_constraint_leaves_nothing_inside_the_whole_vocabulary_is_drafted_from(keeping):
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    target = models["target"]
    keeping([*target.encode("zq"), *target.eos])
    chosen = {"keep": 0.5, "constraint": "regex", "constraint_text": "[0-9]{6}"}
    trace = Lane("vocabtrim", [40, 41], models, chosen, 0, Limits(12)).run()
    assert re.fullmatch(r"[0-9]{6}", trace.text().removesuffix(tiny_models.END))
