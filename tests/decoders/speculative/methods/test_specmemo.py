"""SpecMemo: predicted bytes are those of the engine's tensors; more memory never shortens a draft; too little
switches drafts off; the text stays the target's.
"""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.engine import Engine
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative import draft_verify_loop as loop
from decoders.speculative.methods import specmemo
from decoders.speculative.methods.smartspec import CostModel
from decoders.speculative.methods.specmemo import Place, Sizes, longest, memory, shortest
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Note, Propose
from decoders.trace.scores import Measure
from tests.helpers.losslessness import law_of_rounds

TARGET, DRAFT = Sizes(100, 40, 8, 30, 4), Sizes(20, 40, 4, 10, 4)


class Endless(LoadedModel):
    """A model without an end-of-text token: drafts are as long as they were planned."""

    eos = frozenset()


def told(trace) -> list[tuple[int, dict]]:
    """(total, parts) of each round."""
    return [(e.total, e.parts) for s in trace.steps for e in s.of(Measure) if e.name == "memory"]


def test_the_sum_of_a_round_by_hand():
    sums = memory(Place(length=10, target=9, draft=8), 3, TARGET, DRAFT)
    assert sums["text"] == 10 * 100 + 10 * 20
    assert sums["guesses"] == 3 * 100 + 2 * 20
    assert sums["logits"] == 4 * 40 + 3 * 40
    assert sums["mask"] == 4 * 13 * 4
    assert sums["states"] == 4 * 8 + 4 * 30 + 3 * 4 + 4 * 10
    alone = memory(Place(10, 9, 8), 0, TARGET, DRAFT)
    assert alone["text"] == 10 * 100 + 8 * 20 and alone["mask"] == 0


def test_more_memory_never_shortens_a_draft():
    place = Place(50, 49, 48)
    chosen = [longest(place, budget, 8, TARGET, DRAFT) for budget in range(0, 12000, 20)]
    assert chosen == sorted(chosen) and set(chosen) == set(range(9))
    for budget in (6500, 7000, 7500):
        n = longest(place, budget, 8, TARGET, DRAFT)
        assert sum(memory(place, n, TARGET, DRAFT).values()) <= budget
        assert sum(memory(place, n + 1, TARGET, DRAFT).values()) > budget


def test_the_fewest_guesses_that_pay():
    costs = CostModel()
    assert shortest(0.7, 100, 0.1, 8, costs) == 1
    assert shortest(0.7, 100, 0.6, 8, costs) > 1
    assert shortest(0.0, 100, 0.0, 8, costs) == 9
    fewest = [shortest(0.7, 100, margin / 10, 8, costs) for margin in range(20)]
    assert fewest == sorted(fewest)


def real(lane: Lane, draft, masks: list[int]) -> dict[str, int]:
    """Bytes of the tensors that stand in the engines when a round has been checked."""
    found = dict.fromkeys(("cache", "logits", "states"), 0)
    asked = {"target": [draft.root, *draft.nodes], "draft": [draft.root, *draft.nodes][:-1]}
    for role, scorer in lane.scorers.items():
        pool = scorer.cache.pool
        if pool is not None and scorer.started:
            found["cache"] += scorer.used * pool[:, :, :, 0].nbytes
        batches = {id(scorer.kept[n][0]): scorer.kept[n][0] for n in asked[role] if n in scorer.kept}
        for batch in batches.values():
            found["logits"] += batch.logits.nbytes
            found["states"] += sum(
                t.nbytes for t in (batch.hidden, batch.stream, batch.queries) if t is not None
            )
    return {**found, "mask": masks[-1]}


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
@pytest.mark.parametrize("prompt", [[40, 41, 42, 43], [7]])
def test_predicted_bytes_are_those_of_the_tensors(tiny_model, monkeypatch, kind, prompt):
    made = {"target": tiny_model(kind), "draft": tiny_model("llama", 1)}
    models = {role: Endless(m.name, m.model, m.tokenizer) for role, m in made.items()}
    measured, masks = [], []
    forward, judged = Engine.forward, loop.judged

    def seen_forward(engine, request, pause=None):
        mask = request.columns.mask
        masks.append(0 if mask is None else mask.nbytes)
        return forward(engine, request, pause)

    def seen_judged(lane, draft, *rest):
        measured.append((len(draft.nodes), real(lane, draft, masks)))
        return judged(lane, draft, *rest)

    monkeypatch.setattr(Engine, "forward", seen_forward)
    monkeypatch.setattr(loop, "judged", seen_judged)
    parameters = {"num_assistant_tokens": 3, "temperature": 1.0}
    trace = Lane("specmemo", prompt, models, parameters, seed=3, limits=Limits(20)).run()
    predicted = told(trace)
    assert len(predicted) == len(measured) > 3 and any(n for n, _ in measured)
    for (total, sums), (_, found) in zip(predicted, measured, strict=True):
        assert sums["text"] + sums["guesses"] == found["cache"]
        for name in ("logits", "mask", "states"):
            assert sums[name] == found[name]
        assert total == sum(found.values())


def test_drafts_shorten_as_the_text_grows_and_end(tiny_model):
    models = {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}
    for model in models.values():
        assert model.engine.fast_llama is not None
    place, sizes = Place(5, 4, 3), [specmemo.sizes_of(m.engine) for m in models.values()]
    budget = -(-sum(memory(place, 8, *sizes).values()) // 1000) + 4
    trace = Lane("specmemo", [5], models, {"memory_kilobytes": budget}, limits=Limits(60)).run()
    drafted = [len([e for e in s.of(Propose) if e.source == "draft"]) for s in trace.steps]
    assert max(drafted) > 1 and (len(trace.output()) < 40 or drafted[-1] == 0)
    for total, _ in told(trace)[1:]:
        assert total <= budget * 1000 or drafted[-1] == 0
    greedy = Lane("greedy", [5], models, limits=Limits(60)).run()
    assert trace.output() == greedy.output()


def test_below_the_bound_it_decodes_plainly_and_says_so(tiny_model, prompt):
    models = {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}
    for parameters in ({"memory_kilobytes": 0}, {"margin": 10.0, "memory_kilobytes": 100_000}):
        trace = Lane("specmemo", prompt, models, parameters, limits=Limits(15)).run()
        assert trace.costs.draft_forwards == trace.costs.proposed == 0
        assert trace.output() == Lane("greedy", prompt, models, limits=Limits(15)).run().output()
        notes = [e.text for s in trace.steps for e in s.of(Note)]
        assert notes[0].startswith("No draft: the round takes ")
    assert longest(Place(5, 4, 3), 0, 8, TARGET, DRAFT) == 0


@pytest.mark.parametrize("budget", [0, 2, 3, 4, 100])
def test_the_law_is_the_target_s_for_any_budget(monkeypatch, budget):
    """Table models, with made-up sizes, so that the budget does shorten drafts."""
    monkeypatch.setattr(specmemo, "sizes_of", lambda engine: TARGET)
    models = {"target": TableModel(random_table(1), 3), "draft": TableModel(random_table(2), 3)}
    monkeypatch.setattr(specmemo, "KILO", 300)
    parameters = {"memory_kilobytes": budget, "temperature": 1.0, "num_assistant_tokens": 2}
    law = law_of_rounds(Exhaustive(), "specmemo", models, parameters, 3)
    assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


def test_half_the_bits_take_half_the_bytes(tiny_model):
    wide, narrow = (
        specmemo.sizes_of(tiny_model("llama", dtype=d).engine) for d in (torch.float64, torch.float32)
    )
    assert [2 * getattr(narrow, f) for f in vars(narrow)] == [getattr(wide, f) for f in vars(wide)]
