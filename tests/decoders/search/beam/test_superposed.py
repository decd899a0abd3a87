"""Superposed decoding: its numbers by hand, a naive loop over transformers' embeddings, and its costs."""

import math
from collections import Counter

import pytest
import torch

from decoders.datastore import concatenated_texts, followers, texts
from decoders.engine.engine import Engine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.beam.hypotheses import returned
from decoders.search.beam.superposed import mixture_weights, ngram_probs, personal, sharpened
from decoders.trace.scores import Measure
from tests.helpers.deep_models import PROMPT, Endless, deep

TOKENS = 7


@pytest.fixture(scope="module")
def target():
    return deep(layers=3)


def trace(target, strategy="superposed", tokens=TOKENS, **parameters):
    return Lane(strategy, list(PROMPT), {"target": target}, parameters, limits=Limits(tokens)).run()


# ---- the numbers -------------------------------------------------------------------------------------------


def test_weights_of_a_mixture():
    scores = [math.log(p) for p in (0.2, 0.1, 0.1)]
    assert list(mixture_weights(scores, [7, 8, 9]).values()) == pytest.approx([0.5, 0.25, 0.25])
    assert mixture_weights(scores, [7, 8, 7]) == pytest.approx({7: 0.75, 8: 0.25})


def test_the_hand_example_of_two_drafts():
    totals = torch.tensor([[0.6], [0.4]]).double().log()
    laws = [{0: 0.7, 1: 0.2, 2: 0.1}, {0: 0.1, 1: 0.1, 2: 0.8}]
    sums = totals + personal(torch.tensor([0.6, 0.3, 0.1]).double().log(), laws, 0.5)
    assert sums[0].tolist() == pytest.approx([-0.9446, -1.9175, -2.8134], abs=1e-4)
    assert sums[1].tolist() == pytest.approx([-2.3230, -2.6696, -2.1792], abs=1e-4)
    values, places = sums.flatten().topk(2)
    assert places.tolist() == [0, 1]  # the first draft with token 0 and with token 1
    assert list(mixture_weights(values.tolist(), [0, 1]).values()) == pytest.approx(
        [0.7257, 0.2743], abs=1e-4
    )


def test_tokens_that_no_ngram_knows_are_out_unless_none_is_known():
    shared = torch.tensor([0.5, 0.5, 0.0]).double().log()
    rows = personal(shared, [{1: 0.3}, {2: 0.9}, {}], 0.5)
    assert rows[0].tolist() == [-math.inf, pytest.approx(0.5 * math.log(0.5 * 0.3)), -math.inf]
    for row in rows[1:]:  # what is known is not among the shared tokens
        assert row.tolist() == [pytest.approx(0.5 * math.log(0.5) - 200)] * 2 + [-math.inf]
    assert personal(shared, [{}], 0.0).tolist() == [shared.tolist()]
    assert personal(shared, [{0: 0.2}], 1.0).tolist() == [
        [pytest.approx(math.log(0.2)), -math.inf, -math.inf]
    ]


def test_ngrams_are_counted_within_texts_and_weighed_by_order():
    known = followers(concatenated_texts([[1, 2, 3], [1, 2, 4], [2, 3]]), 2)
    assert known[(2,)] == Counter({3: 2, 4: 1}) and known[(1, 2)] == Counter({3: 1, 4: 1})
    assert (3, 1) not in known  # one text ends, another begins
    law = ngram_probs(known, [9, 1, 2], [0.1, 0.4])
    assert law == pytest.approx({3: 0.1 * 2 / 3 + 0.4 / 2, 4: 0.1 / 3 + 0.4 / 2})
    assert ngram_probs(known, [2], [0.1, 0.4]) == pytest.approx({3: 0.1 * 2 / 3, 4: 0.1 / 3})  # no longer run
    assert ngram_probs(known, [9], [0.1, 0.4]) == {}


def test_the_shared_row_is_sharpened_and_cut():
    row = sharpened(torch.tensor([1.0, 3.0, 2.0]), 0.5, 2)
    assert row.exp().tolist() == pytest.approx([0.0, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))])
    assert sharpened(torch.tensor([1.0, 3.0, 2.0]), 0.0, 2).tolist() == [-math.inf, 0.0, -math.inf]


# ---- the loop ----------------------------------------------------------------------------------------------


def naive(target, k, alpha, temperature=0.5, top_k=6, weights=(0.2, 0.5), plain_first=False):
    """The best k texts, with transformers run on the embeddings of the whole text each time. plain_first: the
    first tokens by their log-probability, as in the paper; else scored as all others, as in the release.
    """
    model, embed = target.model, target.model.get_input_embeddings()
    known = followers(concatenated_texts([target.encode(t) for t in texts("stories")]), len(weights))
    read = embed(torch.tensor([PROMPT]))
    drafts = [(0.0, [])]
    if plain_first:
        first = model(inputs_embeds=read).logits[0, -1].log_softmax(-1).topk(k)
        drafts = [(d, [v]) for d, v in zip(first.values.tolist(), first.indices.tolist(), strict=True)]
    for position in range(plain_first, TOKENS):
        w = torch.tensor([d for d, _ in drafts]).softmax(-1).double()
        if position:
            e = sum(share * embed.weight[text[-1]] for share, (_, text) in zip(w, drafts, strict=True))
            read = torch.cat([read, e[None, None]], dim=1)
        row = (model(inputs_embeds=read).logits[0, -1] / temperature).log_softmax(-1)
        kept = row.topk(top_k)
        p = kept.values.log_softmax(-1).tolist()
        sums = []
        for d, text in drafts:
            law = ngram_probs(known, [*PROMPT, *text], weights) if alpha else {}
            some = any(law.get(v, 0.0) > 0 for v in kept.indices.tolist())
            for v, lp in zip(kept.indices.tolist(), p, strict=True):
                if alpha and some and law.get(v, 0.0) == 0:
                    continue
                extra = alpha * math.log(law[v]) if alpha and some else -200.0 if alpha else 0.0
                sums.append((d + (1 - alpha) * lp + extra, [*text, v]))
        drafts = sorted(sums, key=lambda one: -one[0])[:k]
    return drafts


@pytest.mark.parametrize("k, alpha", [(1, 0.0), (3, 0.0), (3, 0.4), (5, 0.7)])
@pytest.mark.parametrize("first", ["as all others", "model alone"])
def test_it_is_a_naive_loop(target, k, alpha, first):
    given = {"num_beams": k, "alpha": alpha, "temperature": 0.5, "top_k": 6, "ngram_weights": [0.2, 0.5]}
    found = trace(target, **given, first_token=first)
    want = naive(target, k, alpha, plain_first=first == "model alone")
    texts_of = [(tokens, score * TOKENS) for tokens, score in returned(found)]
    best = texts_of[0]
    assert best[0] == found.output() == want[0][1] and best[1] == pytest.approx(want[0][0])


def test_one_draft_without_ngrams_is_greedy(target, tiny_model):
    for model in (target, tiny_model("llama"), tiny_model("gpt2")):
        assert trace(model, num_beams=1, alpha=0.0).output() == trace(model, "greedy").output()


@pytest.mark.parametrize("k", [1, 3, 8])
def test_a_step_is_one_forward_of_one_token_for_any_number_of_drafts(target, k):
    totals = trace(target, num_beams=k).costs.totals()
    assert (totals["target_forwards"], totals["target_tokens"]) == (TOKENS, len(PROMPT) + TOKENS - 1)
    assert totals["lens_forwards"] == 1  # what the output is worth to the target itself


def test_the_layer_of_embeddings_is_linear_and_the_others_are_told(target):
    found = trace(target, linearity=True, temperature=1.0, alpha=0.0)
    scores = [e for step in found.steps for e in step.of(Measure) if e.name == "linearity"]
    assert len(scores) == TOKENS - 1
    for score in scores:
        assert len(score.parts) == 4 and score.parts["after 0 layers"] == pytest.approx(1.0)
        assert score.total == score.parts["after 3 layers"] <= 1.0 + 1e-9
    assert found.output() == trace(target, temperature=1.0, alpha=0.0).output()
    assert found.costs.totals()["target_forwards"] == TOKENS


# ---- mixtures in the engine --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3", "opt"])
@pytest.mark.parametrize("how", [Engine, SequenceEngine])
def test_a_mixture_is_read_as_transformers_reads_its_embedding(tiny_model, kind, how):
    model = tiny_model(kind).model
    embed = model.get_input_embeddings()(torch.tensor([[*PROMPT, 9, 8]]))
    mixed = 0.3 * embed[0, 1] + 0.7 * embed[0, 5]
    embed[0, 5] = mixed
    tree = Tree(list(PROMPT))
    nodes = [tree.add(4, 9)]
    nodes.append(tree.add(nodes[0], 8))
    scorer = how(model).attach(tree)
    scorer.score([4])
    scorer.mixed[nodes[0]] = mixed
    rows = torch.cat([scorer.score(nodes[:1]), scorer.score(nodes[1:])])
    scorer.close()
    torch.testing.assert_close(rows, model(inputs_embeds=embed).logits[0, 5:], atol=1e-4, rtol=1e-4)


def test_a_table_is_refused(tiny_model):
    with pytest.raises(ValueError, match="reads the input embeddings of the target, which a table"):
        Lane("superposed", [0], {"target": TableModel(lambda past: (0.5, 0.5), 2)})
    odd = Endless("odd", tiny_model("llama").model, tiny_model("llama").tokenizer)
    odd.engine.__dict__["runs_in_part"] = False  # of its own engine, not the shared model's
    with pytest.raises(ValueError, match="a part of the layers .* choose Superposed decoding with its"):
        Lane("superposed", [0], {"target": odd}, {"linearity": True})
