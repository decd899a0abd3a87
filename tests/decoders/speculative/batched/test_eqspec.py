"""EQSPEC and EXSPEC: the dossier's realignment, equality whatever the batch, and mistakes that show."""

from types import SimpleNamespace

import pytest
import torch

from decoders.engine.engine import Engine
from decoders.engine.tree import Tree
from decoders.speculative.batched.eqspec import MISTAKES, NONE, of_one_length
from decoders.speculative.batched.padded_batch import Rectangle
from decoders.trace.scores import Measure, Score
from decoders.trace.trace import Trace
from tests.helpers.batch_results import accepted, alone, cousins, rounds, run, written

PROMPTS = ["Lily had a big wish.", "Once", "The old man looked at the sky", "aa aa aa"]


@pytest.fixture(scope="module")
def models():
    return cousins()


@pytest.fixture(scope="module")
def want(models):
    return [alone(models, prompt, 14) for prompt in PROMPTS]


def told(trace: Trace) -> list[Score]:
    """What the rounds say of padding."""
    return [e for step in trace.steps for e in step.of(Measure) if e.name == "padding"]


def chain(tree: Tree, parent: int, tokens: list[int]) -> list[int]:
    nodes = []
    for token in tokens:
        parent = tree.add(parent, token)
        nodes.append(parent)
    return nodes


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_the_dossiers_rows_are_unpadded_appended_and_padded_anew(tiny_model, kind):
    """Lengths 5 and 3; 3 and 1 tokens are committed: lengths 8 and 4, padding 0 and 4, entries 7 and 3."""
    model, tree = tiny_model(kind).model, Tree([5, 6, 7, 8, 9])
    second = chain(tree, -1, [10, 11, 12])
    batch = Rectangle(model, tree)
    a, b = chain(tree, 4, [20, 21, 22]), chain(tree, second[-1], [30, 31, 32])
    first = batch.score([4, *a, second[-1], *b])
    own = [tree.add(a[1], 40), tree.add(second[-1], 41)]
    batch.release([a[2], *b])
    later = batch.score(own)
    rows = list(batch.rows.values())
    assert [len(row.nodes) - 1 for row in rows] == [7, 3]
    assert [row.padding for row in rows] == [0, 4] and batch.width == 7 and rows[1].moved == 3
    assert rows[0].nodes == [0, 1, 2, 3, 4, a[0], a[1], own[0]] and rows[1].nodes == [*second, own[1]]
    assert [row.columns for row in rows] == [[*range(8)], [4, 5, 6, 7]]
    engine = Engine(model).attach(tree)  # the same numbers with a tree mask instead of padding
    assert (first - engine.score([4, *a, second[-1], *b])).abs().max() < 1e-4
    assert (later - engine.score(own)).abs().max() < 1e-4
    assert torch.equal(batch.score(own), later) and batch.work.tokens == 0  # asked again: nothing runs
    engine.close()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_text_is_what_it_is_alone(models, want, count):
    trace = run("eqspec", models, PROMPTS[:count], 14)
    assert list(written(trace).values()) == want[:count]
    assert trace.costs.totals()["target_forwards"] == len(trace.steps)
    widths = {score.parts["width"] - score.total for score in told(trace)}
    assert len(widths) > 1 and sum(accepted(c) for texts in rounds(trace) for c in texts.values()) > 0


@pytest.mark.parametrize("size, window", [(1, 1), (2, 2), (3, 4)])
def test_exspec_says_the_same_whatever_the_batch_and_the_window(models, want, size, window):
    trace = run("exspec", models, PROMPTS, 14, {"batch_size": size, "window": window})
    texts = written(trace)
    assert [texts[f"text {n}"] for n in (1, 2, 3, 4)] == want
    assert max(len(texts) for texts in rounds(trace)) <= size


@pytest.mark.parametrize("strategy", ["eqspec", "exspec"])
def test_texts_of_equal_length_are_never_moved(models, strategy):
    trace = run(strategy, models, ["aa aa aa"] * 3, 14, {"batch_size": 3} if strategy == "exspec" else None)
    assert told(trace) and all(score.total == 0 == score.parts["moved"] for score in told(trace))


def test_ragged_texts_are_moved(models):
    trace = run("eqspec", models, PROMPTS, 14)
    assert any(score.total and score.parts["moved"] for score in told(trace))


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m != NONE])
def test_each_mistake_changes_a_text(models, want, mistake):
    trace = run("eqspec", models, PROMPTS, 14, {"mistake": mistake})
    assert trace.badge == "relaxed" and list(written(trace).values()) != want
    assert run("eqspec", models, PROMPTS[:1], 4).badge == "lossless: equal to greedy"


def test_the_first_texts_of_one_length_run_together():
    texts = [SimpleNamespace(length=n, started=s) for n, s in ((4, True), (5, True), (4, False), (5, True))]
    assert of_one_length(texts, 2) == [texts[1], texts[3]]
    assert of_one_length(texts, 3) == texts[:3] and of_one_length(texts, 1) == texts[:1]
    assert of_one_length(texts[:1], 2) == texts[:1]
