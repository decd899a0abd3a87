"""Experiments on memory: all of a budget changes nothing, less does; bytes are those of the tensors."""

import pytest
import torch
from transformers import DynamicCache

from decoders.lane import Lane, Limits
from decoders.models import load
from explorer.experiments import find_stored
from explorer.experiments.reading import rows_of
from explorer.experiments.sweeps.memory_policies import BUDGETS, TOKENS, best_within, drift
from explorer.experiments.without_decoding.cache_of_architectures import (
    after,
    held,
    seen,
    shade,
    stored_picture,
)


def test_a_text_is_the_full_caches_with_all_of_the_budget_and_strays_with_little(tiny_model):
    models = {"target": tiny_model()}
    prompt = [5, 9, 13, 2, 7, 11, 3, 8, 6, 12, 4, 10]
    given = {"memory": "lm-infinite", "memory_global": 0}
    plain = Lane("greedy", prompt, models, {}, limits=Limits(TOKENS)).run().output()
    whole = drift(models, "greedy", prompt, plain, **given, memory_local=60)
    little = drift(models, "greedy", prompt, plain, **given, memory_local=2)
    assert whole.changed is None and max(whole.nats) < 1e-4 and whole.kept == pytest.approx(1.0)
    assert max(little.nats) > 1e-3 and little.kept < 0.5
    other = [*plain[:3], plain[3] + 1, *plain[4:]]
    assert drift(models, "greedy", prompt, other, **given, memory_local=60).changed == 4
    assert drift(models, "greedy", prompt, plain[:5], **given, memory_local=60).changed == 6


def test_the_best_memory_within_a_share_is_the_one_that_strays_least():
    columns = "memory", "budget", "of the full cache", "KL in nats"
    cells = ("A", "bits 2", 0.3, 0.5), ("B", "local 9", 0.5, 0.1), ("C", "bits 4", 0.9, 0.0)
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    assert "B (local 9) drifts least: 0.1000" in best_within(rows, 0.6)
    assert best_within(rows, 0.1).startswith("No memory fits")


def test_tensors_are_counted_once_wherever_they_are_kept(tiny_model):
    one = torch.zeros(3, 5)
    assert held([one, {"again": one, "other": (torch.ones(2, dtype=torch.float64), 7, "x", None)}]) == 60 + 16
    cache = DynamicCache()
    cache.update(torch.zeros(1, 2, 9, 4), torch.ones(1, 2, 9, 4), 0)
    assert held(cache) == 2 * 2 * 9 * 4 * 4
    net = tiny_model().model
    shape = net.config
    width = shape.num_key_value_heads * (shape.hidden_size // shape.num_attention_heads)
    assert after(net, 7) == 7 * 2 * shape.num_hidden_layers * width * net.dtype.itemsize


@torch.inference_mode()
def test_yocos_windows_look_back_layer_by_layer_and_its_upper_half_at_everything():
    model = load("llama-tiny-yoco")
    window, text = model.model.config.window, [at % 90 + 400 for at in range(80)]
    reach = {name: sum(one > 0 for one in changes) for name, changes in seen(model.model, text).items()}
    assert [*reach.values()] == [window, 2 * window - 1, 80, 80]
    row = stored_picture("llama-tiny-yoco")["rows"][-1]
    assert row["label"] == f"lower 1: window of {window}"
    assert sum(value > 0 for value in row["values"][0]) == window
    assert stored_picture("no such model") is None


def test_shades_tell_four_powers_of_ten_and_white_is_nothing():
    assert [shade(one) for one in (0.0, 1e-9, 1e-2, 1.0, 3.0)] == [0.0, 0.2, 0.5, 1.0, 1.0]


def test_stored_memories_change_nothing_with_all_of_the_budget():
    rows = rows_of(find_stored("memory-policies"))
    for name in BUDGETS:
        own = [row for row in rows if row["memory"] == name]
        assert own[-1]["KL in nats"] < 1e-4 and own[-1]["first changed token"] is None
        assert own[0]["KL in nats"] > own[-1]["KL in nats"]


def test_stored_caches_are_those_of_the_dossiers_formulas():
    rows = {row["model"]: row for row in rows_of(find_stored("cache-of-architectures"))}
    assert rows["llama-tiny"]["bytes per further token"] == rows["llama-tiny"]["ordinary cache of this shape"]
    assert rows["llama-tiny-flowformer"]["bytes per further token"] == 0
    one_set = 2 * 128 * 4  # a key and a value of 128 numbers, once for all layers
    assert rows["llama-tiny-yoco"]["bytes per further token"] == one_set
    assert rows["llama-tiny-sambay"]["bytes per further token"] == one_set
