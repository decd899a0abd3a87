"""Contrastive search against a naive implementation with a separate forward for everything, in float64.

transformers 5.23 has no contrastive search in its core (`penalty_alpha` loads code from the Hub), so
`generate` cannot be compared with; the naive implementation below is written from the definition.
"""

from dataclasses import dataclass

import pytest
import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, TableScorer
from decoders.trace.events import Forward, Propose, Verdict
from decoders.trace.scores import Rank


def run(model, prompt, new_tokens=12, strategy="contrastive_search", **parameters):
    return Lane(
        strategy, prompt, {"target": model}, parameters, limits=Limits(max_new_tokens=new_tokens)
    ).run()


def naive(model, prompt: list[int], new_tokens: int, alpha: float, top_k: int) -> list[int]:
    """argmax_v (1 - alpha) p(v) - alpha max_j cos(h_v, h_j), every state from a forward of its own over the
    whole text.
    """

    def states(text):
        return model.model(torch.tensor([text]), output_hidden_states=True, use_cache=False)

    text = list(prompt)
    while len(text) < len(prompt) + new_tokens:
        output = states(text)
        p = output.logits[0, -1].softmax(-1)
        context = output.hidden_states[-1][0]
        scores = {}
        for v in p.topk(top_k).indices.tolist():
            h = states([*text, v]).hidden_states[-1][0, -1]
            penalty = max(torch.cosine_similarity(h, other, dim=0).item() for other in context)
            scores[v] = (1 - alpha) * p[v].item() - alpha * penalty
        text.append(max(scores, key=scores.get))
        if text[-1] in model.eos:
            break
    return text[len(prompt) :]


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
def test_equals_the_naive_implementation(kind, tiny_model):
    model = tiny_model(kind, 0, torch.float64)
    for prompt, alpha, top_k in (
        ([1, 2, 3], 0.6, 4),
        ([50], 0.9, 6),
        ([7, 7, 8, 9, 7], 0.3, 3),
        ([200, 100], 1.0, 5),
    ):
        ours = run(model, prompt, 10, penalty_alpha=alpha, top_k=top_k).output()
        assert ours == naive(model, prompt, 10, alpha, top_k)


def test_alpha_0_and_top_1_are_greedy_and_alpha_matters(tiny_model):
    texts = set()
    for prompt in ([1, 2, 3], [9], [30, 31]):
        greedy = run(tiny_model(), prompt, 20, strategy="greedy").output()
        assert run(tiny_model(), prompt, 20, penalty_alpha=0.0).output() == greedy
        assert run(tiny_model(), prompt, 20, top_k=1).output() == greedy
        texts.add(run(tiny_model(), prompt, 20).output() == greedy)
    assert texts != {True}


def test_looking_ahead_is_the_winners_next_forward(tiny_model):
    model = tiny_model("gpt2")
    trace = run(model, [5, 6, 7], 15, top_k=4)
    forwards = [f for step in trace.steps for f in step.of(Forward)]
    assert [(f.kind, f.tokens) for f in forwards] == [("prefill", 3)] + [("decode", 4)] * len(trace.steps)
    assert model.engine.cache.used == 0


def test_losers_are_pruned_with_both_parts_of_their_score(tiny_model):
    trace = run(tiny_model(), [5, 6, 7], 8, penalty_alpha=0.6, top_k=3)
    for step, token in zip(trace.steps, trace.output(), strict=True):
        scores = sorted(step.of(Rank), key=lambda s: s.rank)
        assert [s.rank for s in scores] == [1, 2, 3]
        assert [s.total for s in scores] == sorted((s.total for s in scores), reverse=True)
        for s in scores:
            assert s.total == pytest.approx(0.4 * s.parts["p"] - 0.6 * s.parts["penalty"], abs=1e-6)
        nodes = {p.node: p.token for p in step.of(Propose)}
        assert nodes[scores[0].node] == token
        assert {v.node for v in step.of(Verdict)} == nodes.keys() - {scores[0].node}
        assert all(v.status == "pruned" and "similarity" in v.reason for v in step.of(Verdict))


@dataclass
class Compass(TableModel):
    """A table model whose tokens have hand-set hidden states [2]."""

    capabilities = frozenset({Capability.HIDDEN_STATES})

    def attach(self, tree):
        scorer = TableScorer(self, tree)
        cosines = {0: 0.95, 1: 0.4, 2: 1.0}  # with the prompt's state (1, 0)
        scorer.hidden = lambda node: torch.tensor(
            [cosines[tree.tokens[node]], (1 - cosines[tree.tokens[node]] ** 2) ** 0.5], dtype=torch.float64
        )
        return scorer


def test_the_worked_example_prefers_the_less_likely_candidate():
    trace = run(Compass(lambda past: (0.5, 0.3, 0.2), 3), [2], 1, penalty_alpha=0.6, top_k=2)
    assert [s.total for s in trace.steps[0].of(Rank)] == pytest.approx([-0.37, -0.12])
    assert trace.output() == [1]


def test_a_model_without_hidden_states_is_told_in_one_sentence():
    with pytest.raises(
        ValueError,
        match="reads hidden states of the target, which a table does not give;",
    ):
        run(TableModel(lambda past: (0.5, 0.5), 2), [0])
