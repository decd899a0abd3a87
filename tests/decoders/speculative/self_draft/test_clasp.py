"""CLaSp: exact; its plan on worked examples, against all sets, and with a layer that does nothing."""

from itertools import combinations
from math import cos, radians, sin

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.engine import Engine
from decoders.engine.layers import Layers
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.speculative.self_draft.clasp import cosine, plan
from decoders.testing import distance
from decoders.trace.events import Forward, Note
from decoders.trace.scores import Table
from tests.helpers.deep_models import PROMPT, deep, greedys, run
from tests.helpers.losslessness import law_of_rounds


def rotated(angles: list[float]):
    """Layers that turn the plane by these angles: (states after 0 to L layers, run)."""

    def run(layer: int, states: torch.Tensor) -> torch.Tensor:
        a = radians(angles[layer])
        return states @ torch.tensor([[cos(a), sin(a)], [-sin(a), cos(a)]], dtype=torch.float64)

    streams = [torch.tensor([[1.0, 0.0]], dtype=torch.float64)]
    for layer in range(len(angles)):
        streams.append(run(layer, streams[-1]))
    return torch.cat(streams), run


@pytest.mark.parametrize(("most", "skipped", "apart"), [(0, [], 0), (1, [0], 10), (2, [0, 2], 40)])
def test_the_example_in_the_plane(most, skipped, apart):
    found, close, table = plan(*rotated([10, 40, 30]), most)
    assert found == skipped and close == pytest.approx(cos(radians(apart)))
    assert [set(row) for row in table] == [set(range(min(layer, most) + 1)) for layer in (1, 2, 3)]


def test_an_identity_layer_is_skipped_first():
    for place in range(4):
        angles = [20.0, 35.0, 15.0]
        angles.insert(place, 0.0)
        assert plan(*rotated(angles), 1)[:2] == ([place], pytest.approx(1.0))


def test_no_set_of_layers_ends_closer_than_the_best_and_the_plan_ends_where_it_says():
    for seed in range(8):
        draw = torch.Generator().manual_seed(seed)
        weights = 0.4 * torch.randn(6, 5, 5, generator=draw, dtype=torch.float64)

        def run(layer: int, states: torch.Tensor, weights=weights) -> torch.Tensor:
            return states + torch.tanh(states @ weights[layer])

        start = torch.randn(1, 5, generator=draw, dtype=torch.float64)
        streams = [start]
        for layer in range(6):
            streams.append(run(layer, streams[-1]))
        streams = torch.cat(streams)
        ends = {(): start}  # skipped layers -> state [1, 5] after all others
        for most in range(5):
            for skipped in combinations(range(6), most):
                state = start
                for layer in range(6):
                    state = state if layer in skipped else run(layer, state)
                ends[skipped] = state
            found, close, _ = plan(streams, run, most)
            assert len(found) == most
            assert close == pytest.approx(float(cosine(ends[tuple(found)][0], streams[-1])))
            best = max(float(cosine(e[0], streams[-1])) for s, e in ends.items() if len(s) == most)
            assert close <= best + 1e-12


def alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal but for rounding: transformers' RMS norm rounds to float32."""
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("make", [Engine, SequenceEngine])
def test_streams_and_single_layers_are_the_models_own(kind, make):
    """Layer by layer from the embedding one arrives at the whole model's states."""
    model = deep(kind, layers=4)
    tree = Tree(PROMPT)
    node = tree.add(4, 7)
    scorer = make(model.model).attach(tree)
    scorer.score([4])
    scorer.taps = True
    scorer.score([node])
    streams = scorer.streams(node)
    want = model.model(torch.tensor([[*PROMPT, 7]]), output_hidden_states=True).hidden_states
    assert all(alike(streams[i], want[i][0, -1]) for i in range(4))
    assert alike(model.model.model.norm(streams[4]), want[4][0, -1])
    copies = [tree.add(4, 7) for _ in range(2)]
    for layer in range(4):
        for states in (streams[layer][None], streams[[layer, 0]]):
            after = scorer.through(copies[: len(states)], layer, states)
            assert alike(after[0], streams[layer + 1])
    scorer.close()


@pytest.mark.parametrize(
    ("kind", "most"), [("llama", 0), ("llama", 2), ("llama", 5), ("qwen2", 2), ("mistral", 5)]
)
def test_the_text_is_greedys_whatever_is_skipped(kind, most):
    model = deep(kind)
    found = run("clasp", model, {"skip_layers": most, "replan_every": 5, "threshold": 0.01}, tokens=24)
    assert found.output() == greedys(kind, 24)
    plans = [n.text for s in found.steps for n in s.of(Note)]
    assert len(plans) >= 2 and all(text.startswith("Skips layers") for text in plans)
    tables = [e for s in found.steps for e in s.of(Table)]
    layers = deep(kind).engine.layer_count
    assert len(tables) == layers * len(plans)  # a row a layer, and in the last one all are skipped
    assert [row.chosen for row in tables[layers - 1 :: layers]] == [most] * len(plans)
    assert all([row.total] == row.by_number[row.chosen] for row in tables)
    assert model.engine.cache.used == 0


def test_with_nothing_skipped_every_draft_is_accepted_and_a_plan_costs_one_pass():
    found = run("clasp", deep(), {"skip_layers": 0, "threshold": 0.0, "num_assistant_tokens": 4}, tokens=22)
    totals = found.costs.totals()
    assert totals["accepted"] == totals["proposed"] == 16
    plans = [f for f in found.steps[1].of(Forward) if f.kind == "plan"]
    assert [f.scope for f in plans] == [str(Layers.only([i], 6)) for i in range(6)]
    assert sum(f.share for f in plans) == pytest.approx(1.0)


def test_the_law_is_the_targets():
    model = deep(vocabulary=3, layers=4)
    parameters = {"num_assistant_tokens": 2, "threshold": 0.4, "temperature": 0.8, "skip_layers": 2}
    law = law_of_rounds(Exhaustive(), "clasp", {"target": model}, parameters, length=4)
    plain = law_of_rounds(Exhaustive(), "sample", {"target": model}, {"temperature": 0.8}, length=4)
    assert distance(law, plain) < 1e-9
