"""FlowCut and MustDrop on a prompt: counts, scores, and that what left is as good as never read above."""

import torch

from decoders.engine.tree import Tree
from decoders.memory.engine import MemoryEngine
from decoders.memory.flowcut import dropped, scores_of
from decoders.memory.mustdrop import leaves
from tests.helpers.deep_models import deep

PROMPT = [40 + (7 * i) % 31 for i in range(24)]
FLOWCUT = {"memory": "flowcut", "memory_sink": 2, "memory_keep": 0.4, "memory_until": 0.75}
MUSTDROP = {
    "memory": "mustdrop",
    "memory_sink": 2,
    "memory_question": 5,
    "memory_total": 1.2,
    "memory_single": 0.1,
}


def scored(parameters, layers=6, prompt=PROMPT, special=()):
    scorer = MemoryEngine(deep(layers=layers).engine, parameters, special=special).attach(Tree(list(prompt)))
    return scorer, scorer.score([len(prompt) - 1])[0]


def plain(layers=6):
    return deep(layers=layers).engine.attach(Tree(list(PROMPT))).score([len(PROMPT) - 1])[0]


def test_the_worked_count():
    """N = 8, T = 4, R = 4, H / ln N = 0.5: 1.5, rounded to 2."""
    assert dropped(8, 4, 4, 0.5) == 2
    assert (
        dropped(8, 4, 3, 1.0) == 0 and dropped(8, 4, 0, 1.0) == 4
    )  # uniform attention waits for the last cut
    assert dropped(8, 8, 0, 0.2) == 0


def test_a_score_is_attention_and_likeness_times_size():
    v = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])  # one head; the reader is the last
    attention, left = torch.tensor([0.5, 0.2, 0.3]), torch.ones(3, dtype=torch.bool)
    b = (torch.tensor([2.0, 0.0, 1.0]) / 2**0.5).softmax(0)
    torch.testing.assert_close(scores_of(attention, v, left), (attention + b) * torch.tensor([2.0, 1.0, 1.0]))


def test_what_is_kept_is_nested_and_ends_at_the_target():
    scorer, _ = scored(FLOWCUT)
    kept = scorer.policy.kept
    assert all((above <= below).all() for below, above in zip(kept, kept[1:], strict=False))
    assert int(kept[-1].sum()) == 10 and bool(kept[0].all())
    assert kept[-1][:2].all() and kept[-1][-1]
    assert list(scorer.policy.cuts) == [1, 3]
    full = sum(int(one.sum()) for one in kept) * scorer.engine.shape.layer_bytes
    assert scorer.kept_bytes() == (full, 24 * scorer.engine.shape.slot_bytes)


def test_nothing_leaves_where_all_may_stay():
    for parameters in (FLOWCUT | {"memory_keep": 1.0}, MUSTDROP | {"memory_single": 0.0}):
        scorer, logits = scored(parameters)
        torch.testing.assert_close(logits, plain())
        assert scorer.policy.left.all()


def test_special_tokens_never_leave():
    scorer, _ = scored(FLOWCUT | {"memory_keep": 0.0}, special=[PROMPT[9], PROMPT[15]])
    assert scorer.policy.left.nonzero()[:, 0].tolist() == [0, 1, 9, 15, 23]


def test_mustdrop_drops_by_both_thresholds():
    attention = torch.tensor([[0.1, 0.5, 0.1], [0.1, 0.1, 0.1]])  # 0.2, 0.6 and 0.2 of 1.0
    assert leaves(attention, 0.3, 0.2).tolist() == [True, False, True]
    assert leaves(attention, 0.3, 0.1).tolist() == [False] * 3  # none is below for every question token
    assert leaves(attention, 0.2, 0.2).tolist() == [False] * 3
    assert not leaves(attention, 1.0, 0.0).any()


def test_survivors_shrink_with_both_thresholds():
    """At one layer, where what left cannot change what is looked at later."""
    sizes = {}
    for total in (0.6, 1.0, 1.6):
        for single in (0.03, 0.06, 0.2):
            scorer, _ = scored(MUSTDROP | {"memory_total": total, "memory_single": single}, layers=1)
            left = scorer.policy.left
            assert left[:2].all() and left[-5:].all()
            sizes[total, single] = int(left.sum())
    for (total, single), size in sizes.items():
        assert all(size >= sizes[t, s] for t, s in sizes if t >= total and s >= single)
    assert min(sizes.values()) < max(sizes.values())


def test_all_layers_keep_the_final_survivors():
    scorer, _ = scored(MUSTDROP)
    rows, left = scorer.states(), scorer.policy.left.tolist()
    assert not all(left) and all([state != "evicted" for state in row] == left for row in rows)
    count = sum(left) * scorer.engine.shape.slot_bytes
    assert scorer.kept_bytes()[0] == count
