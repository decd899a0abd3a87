"""SWIFT: exact whatever is skipped, its search never adopts anything worse and finds what all sets hold."""

from itertools import combinations

import pytest
import torch

from decoders.chooser import Exhaustive, Random
from decoders.engine.partial_forward import Blocks
from decoders.speculative.drafters.confidence_stopping import confident_chain
from decoders.speculative.self_draft.layer_skip_search import Search, layers_of, start_set
from decoders.testing import distance
from decoders.trace.events import Commit, Forward, Note, Propose
from decoders.trace.scores import Score
from tests.helpers.deep_models import PROMPT, deep, greedys, run
from tests.helpers.losslessness import law_of_rounds


@pytest.fixture(scope="module")
def model():
    return deep()


@pytest.mark.parametrize(
    ("kind", "ratio", "runners_up"),
    [
        *(("llama", ratio, runners_up) for ratio in (0.2, 0.9) for runners_up in (True, False)),
        ("qwen2", 0.2, False),
        ("qwen2", 0.9, True),
        ("mistral", 0.2, True),
        ("mistral", 0.9, False),
    ],
)
def test_the_text_is_greedys_whatever_is_skipped(kind, ratio, runners_up):
    model = deep(kind)
    parameters = {"skip_ratio": ratio, "context": 4, "runners_up": runners_up, "threshold": 0.02}
    found = run("swift", model, parameters, tokens=30)
    assert found.output() == greedys(kind, 30)
    assert any(f.kind == "plan" for s in found.steps for f in s.of(Forward))
    assert model.engine.cache.used == 0


def test_with_nothing_skipped_all_drafts_are_accepted(model):
    parameters = {"skip_ratio": 0.0, "runners_up": False, "threshold": 0.0, "num_assistant_tokens": 4}
    totals = run("swift", model, parameters, tokens=21).costs.totals()
    assert totals["accepted"] == totals["proposed"] == 16


def test_scores_are_the_share_of_tokens_that_the_thin_model_would_have_written(model):
    """By transformers' own forward, with the whole model before the answer and the thin one in it."""
    context, search = 6, Search(6, 0.45)
    found = run("swift", model, {"context": context}, tokens=16)
    first = next(n.text for s in found.steps for n in s.of(Note))
    said = found.output()[: context + 1]
    with Blocks(model.model).running(layers_of(search.best, 6), starts=[len(PROMPT)]):
        logits = model.model(torch.tensor([[*PROMPT, *said[:-1]]]), use_cache=False).logits[0]
    right = sum(a == b for a, b in zip(logits[len(PROMPT) :].argmax(-1).tolist(), said[1:], strict=True))
    assert f"matches {right} of {context} tokens: where the search begins." in first
    scores = [e for s in found.steps for e in s.of(Score)]
    assert (scores[0].name, scores[0].total, scores[0].level) == ("matched", right / context, "adopted")
    assert all(score.total > scores[0].total for score in scores[1:] if score.level == "adopted")
    plans = [f for s in found.steps for f in s.of(Forward) if f.kind == "plan"]
    assert len(plans) == len(scores)
    assert {f.tokens for f in plans} == {context} and all(0 < f.share < 1 for f in plans)


def test_the_search_never_adopts_a_worse_set_and_finds_the_best_of_all():
    worth = torch.rand(8, generator=torch.Generator().manual_seed(1)).tolist()

    def score(skipped: frozenset[int]) -> float:
        return 0.9 - sum(worth[b] for b in skipped) / 8

    search, chooser, adopted = Search(6, 0.4), Random(0), []
    assert search.best == start_set(6, 3) == frozenset({0, 2, 4, 6}) and search.size == 3
    while not search.over:
        candidate = search.candidate(chooser)
        assert candidate <= set(range(8)) and len(candidate) == (3 if search.tried else 4)
        if search.learn(candidate, score(candidate)):
            adopted.append(search.score)
    assert adopted == sorted(adopted) and len(set(adopted)) == len(adopted)
    assert search.score == pytest.approx(max(score(frozenset(s)) for s in combinations(range(8), 3)))
    assert search.fruitless == 300


def test_every_25th_set_is_where_the_scores_speak_for_also_far_from_the_best():
    """Blocks 0 to 3 can be spared, the others less and less."""

    def score(skipped: frozenset[int]) -> float:
        return 1.0 - sum(max(0, block - 3) for block in skipped) / 30

    planned, drawn, far = [], [], 0
    for seed in range(8):
        search, luck = Search(8, 0.25), Random(seed)
        while len(search.tried) < 25:
            candidate = search.candidate(luck)
            search.learn(candidate, score(candidate))
        found = search.candidate(luck)
        assert len(found) == search.size == 3
        planned.append(score(found))
        drawn += [worth for _, worth in search.tried[1:]]
        far += len(found - search.best) > 1
    assert sum(planned) / len(planned) > sum(drawn) / len(drawn) + 0.1
    assert far  # more than one block from the best set


def test_what_is_skipped_by_number():
    assert str(layers_of({0, 5}, 6)) == "attention 1, 3-6 and MLP 1-2, 4-6 of 6 layers"
    assert layers_of(range(8), 6).share == pytest.approx(2 / 6)
    assert Search(2, 1.0).over and Search(1, 1.0).over and not start_set(2, 0)


def test_a_chain_ends_behind_the_first_unsure_token(model):
    found = run("swift", model, {"threshold": 1.0, "runners_up": False}, tokens=10)
    assert all(len([p for p in s.of(Propose) if p.source == "draft"]) <= 1 for s in found.steps)
    long = run("swift", model, {"threshold": 0.0, "runners_up": False, "num_assistant_tokens": 3}, tokens=10)
    assert max(len([p for p in s.of(Propose) if p.source == "draft"]) for s in long.steps) == 3
    assert all(s.of(Commit) for s in long.steps)


@pytest.mark.parametrize(
    ("runners_up", "verifier"),
    [
        (True, "token by token"),
        (True, "traversal"),
        (False, "token by token"),
        (False, "block"),
    ],
)
@pytest.mark.parametrize("shape", [{"temperature": 0.7}, {"temperature": 1.3, "top_k": 2}])
def test_the_law_is_the_targets(runners_up, verifier, shape):
    model = deep(vocabulary=3, layers=4)
    parameters = {"num_assistant_tokens": 2, "threshold": 0.5, "runners_up": runners_up, **shape}
    parameters["verifier"] = verifier
    law = law_of_rounds(Exhaustive(), "swift", {"target": model}, parameters, length=3)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": model}, shape, length=3)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12) and len(plain) > 7
    assert distance(law, plain) < 1e-9


def test_block_verification_of_runners_up_is_refused_with_a_sentence(model):
    said = "Block verification would distort the target's distribution .*; choose token by token or traversal"
    with pytest.raises(ValueError, match=said):
        run("swift", model, {"verifier": "block", "temperature": 1.0})


def test_the_shape_says_what_it_is():
    assert confident_chain(3, 0.6, 0.0).fill == "fixed" and confident_chain(3, 0.6, 1.0).fill == "sampled"
    assert confident_chain(3, 0.6, 1.0, True).fill == "sampled without replacement"
