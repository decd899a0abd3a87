"""Hydra, ReDrafter, Clover, Clover-2 and blockwise decoding as strategies: exact, and what their papers say
of them.
"""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import take_taps
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.draft_heads.blockwise import value_in
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.scores import Measure, Score
from tests.helpers import tiny_models
from tests.helpers.headed_tables import HeadedTable
from tests.helpers.losslessness import law_of_rounds

TEXT = "the text so far"
STORELESS = {"store": TEXT}
EXACT = [
    ("hydra", {"heads": "Hydra++", "nodes": 3, "depth": 2, "width": 2}),
    ("blockwise", {"block": 3}),
    ("blockwise", {"block": 1}),
    ("blockwise_refined", {"candidates": 2, "paths": 2, "depth": 2, **STORELESS}),
    ("blockwise_refined", {"candidates": 2, "paths": 3, "depth": 2, "heads": "medusa", **STORELESS}),
    ("blockwise_rescored", {"candidates": 2, "depth": 2}),
]


def models_for(strategy: str, target, draft) -> dict:
    return {"target": target} | ({"draft": draft} if strategy == "blockwise_rescored" else {})


@pytest.mark.parametrize(("strategy", "asked"), EXACT)
def test_they_leave_the_targets_law(strategy, asked):
    """Every outcome of every draw, with heads of random weights."""
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    models = models_for(strategy, target, TableModel(random_table(8, 3, 1.5), 3))
    parameters = {"temperature": 1.2, **asked}
    law = law_of_rounds(Exhaustive(), strategy, models, parameters, 4, rounds=2)
    assert distance(law, exact_distribution(target, (0,), 4, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize(
    ("strategy", "asked"),
    [
        *EXACT,
        ("blockwise", {"acceptance": "top k", "best": 1}),
        ("blockwise_refined", {"weight": 0.0}),
        ("redrafter", {"acceptance": "as published"}),
    ],
)
def test_at_temperature_0_they_write_greedys_text(strategy, asked, tiny_model):
    target, draft = tiny_model("llama", 2), tiny_model("llama", 5)
    prompt = target.encode("the cat sat")
    models = models_for(strategy, target, draft)
    lane = Lane(strategy, prompt, models, {"temperature": 0.0, **asked}, limits=Limits(30))
    trace = lane.run()
    assert trace.output() == tiny_models.generate(target, prompt, max_new_tokens=30)
    assert trace.badge == "lossless: equal to greedy"


def test_redrafters_published_rule_bends_the_law():
    """The badge says so, and the exact law shows it."""
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    parameters = {"temperature": 1.0, "acceptance": "as published", "width": 2, "depth": 2}
    law = law_of_rounds(Exhaustive(), "redrafter", {"target": target}, parameters, 3, rounds=2)
    assert sum(law.values()) == pytest.approx(1.0)
    assert distance(law, exact_distribution(target, (0,), 3, shape_of(parameters))) > 1e-3
    lane = Lane("redrafter", [0], {"target": target}, parameters, limits=Limits(4))
    assert lane.run().badge == "relaxed"


def run(strategy: str, asked: dict, new_tokens: int = 30):
    target = tiny_models.make("llama", seed=2)
    return Lane(strategy, [5, 6, 7], {"target": target}, asked, limits=Limits(new_tokens)).run()


def drafted(trace) -> list[list[tuple]]:
    """(parent, token) of what was drafted, round by round."""
    return [[(e.parent, e.token) for e in step.of(Propose) if e.source == "draft"] for step in trace.steps]


def test_a_block_of_one_is_greedy_with_one_token_per_forward():
    trace = run("blockwise", {"block": 1})
    assert not any(drafted(trace)) and len(trace.steps) == len(trace.output())


@pytest.mark.parametrize("asked", [{"block": 5}, {"block": 4, "acceptance": "top k", "best": 64}])
def test_forwards_are_one_and_the_number_of_blocks(asked):
    """One forward over the prompt, then one for each block, which also gives the next block: and each writes
    its accepted tokens and one more.
    """
    trace = run("blockwise", asked)
    blocks = [step for step, guesses in zip(trace.steps, drafted(trace), strict=True) if guesses]
    kinds = [e.kind for step in trace.steps for e in step.of(Forward) if e.model == "target"]
    assert kinds.count("verify") == len(blocks) > 3
    assert len(trace.steps) - len(blocks) <= 2  # the prompt's, and one where a single token is left to write
    written = [
        sum(v.status in ("accepted", "resampled", "bonus") for v in step.of(Verdict)) for step in blocks
    ]
    assert sum(written) + len(trace.steps) - len(blocks) == len(trace.output())


def test_a_minimum_block_as_long_as_the_block_keeps_all_of_it():
    """Whatever the heads say; the lane is called relaxed."""
    trace = run("blockwise", {"block": 4, "minimum_block": 4})
    whole = [step for step, guesses in zip(trace.steps, drafted(trace), strict=True) if len(guesses) == 3]
    assert trace.badge == "relaxed" and len(whole) > 3
    assert all({v.status for v in step.of(Verdict)} <= {"accepted", "bonus"} for step in whole)


def test_a_lattice_without_weight_and_with_one_path_is_the_heads_own_block():
    refined = run("blockwise_refined", {"weight": 0.0, "paths": 1, "depth": 3})
    plain = run("blockwise", {"block": 4})
    assert drafted(refined) == drafted(plain) and any(drafted(plain))


def test_without_weight_the_small_model_changes_nothing():
    target, draft = tiny_models.make("llama", seed=2), tiny_models.make("llama", seed=5)
    models = {"target": target, "draft": draft}
    asked = {"weight": 0.0, "depth": 3}
    rescored = Lane("blockwise_rescored", [5, 6, 7], models, asked, limits=Limits(30)).run()
    assert drafted(rescored) == drafted(run("blockwise", {"block": 4}))


def test_the_lane_says_what_the_lattices_were_worth():
    """The last step has both sentences; the lattice's best path is never worth less than the drafts."""
    notes = [e.text for e in run("blockwise_refined", {"weight": 0.0, "paths": 1}).steps[-1].of(Note)]
    worth = next(note for note in notes if note.startswith("Tokens per round"))
    ours, plain, best = (float(word) for word in worth.replace(",", " ").split() if word[0].isdigit())
    assert ours == plain <= best
    assert any("entropy is" in note for note in notes)


def test_numbers_are_tokens_that_are_written_as_such():
    target = tiny_models.make("llama")
    lane = Lane("blockwise", [5, 6], {"target": target}, limits=Limits(2))
    value = value_in(lane)
    (seven,), (letter,) = target.encode("7"), target.encode("q")
    assert value(seven) == 7.0 and value(letter) is None


@pytest.mark.parametrize("strategy", ["clover", "clover2"])
def test_gates_are_the_cosines_of_the_cell(strategy):
    """Of every drafted node that was gone on from: their mean, and one part for each attention head."""
    trace = run(strategy, {"tree": "widths", "width": 2, "depth": 3})
    gates = [e for step in trace.steps for e in step.of(Measure) if e.name == "gate"]
    assert len(gates) > 10
    for gate in gates:
        assert len(gate.parts) == 4 and all(-1.001 <= value <= 1.001 for value in gate.parts.values())
        assert gate.total == pytest.approx(sum(gate.parts.values()) / 4)


def test_clover2s_drift_is_the_distance_from_the_targets_states():
    """At the root it is that of the feature said from true states."""
    target = tiny_models.make("llama", seed=2)
    module = target.heads["clover2"]
    trace = Lane("clover2", [5, 6, 7], {"target": target}, {"tree": "chain"}, limits=Limits(12)).run()
    text = torch.tensor([[5, 6, 7, *trace.output()]])
    taps = take_taps(target.model, text, module.reads)
    said = module.output_state(module.summaries(taps), 1)[0]
    depth = dict(enumerate(range(3)))
    for step in trace.steps:
        for event in step.of(Propose):
            depth[event.node] = depth[event.parent] + 1
    found = 0
    for step in trace.steps:
        for event in step.of(Score):
            if event.name == "drift" and event.level == "depth 0":
                at = depth[event.node]
                apart = 1 - torch.cosine_similarity(said[at - 1], taps.hidden[0, at], dim=0)
                assert event.total == pytest.approx(float(apart), abs=1e-3)
                found += 1
    assert found > 3
