"""Losslessness as an equality: on table models the law of the output is the target's processed law, to 1e-12.

Every outcome of every draw is walked (chooser `Exhaustive`), through the real strategies.
"""

import pytest

from decoders.chooser import Exhaustive
from decoders.models.table_model import TableModel, exact_distribution
from decoders.testing import distance, random_table, shape_of
from tests.helpers.losslessness import law_of_rounds

PAIRS = {
    "close": (random_table(1), random_table(2, sharpness=0.5)),
    "far": (random_table(3, sharpness=3), random_table(4, sharpness=3)),
    "q has zeros": (random_table(5), random_table(6, zeros=0.4)),
    "p has zeros": (random_table(7, zeros=0.4), random_table(8)),
    "equal": (random_table(9), random_table(9)),
}
SHAPES = {
    "plain": {"temperature": 1.0},
    "hot": {"temperature": 1.7},
    "cold, top-p": {"temperature": 0.6, "top_p": 0.8},
    "top-k": {"temperature": 1.0, "top_k": 2},
}


def pair(name: str, eos: frozenset[int] = frozenset()) -> dict[str, TableModel]:
    target, draft = PAIRS[name]
    return {"target": TableModel(target, 3, eos), "draft": TableModel(draft, 3, eos)}


def check(strategy: str, models: dict, parameters: dict, length: int, rounds: int | None = None) -> None:
    law = law_of_rounds(Exhaustive(), strategy, models, parameters, length, rounds)
    expected = exact_distribution(models["target"], (0,), length, shape_of(parameters))
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-12)
    assert distance(law, expected) < 1e-12


@pytest.mark.parametrize("models", PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_chain_has_the_target_s_law(models, shape):
    check("speculative", pair(models), {"num_assistant_tokens": 2, **SHAPES[shape]}, length=3)


@pytest.mark.parametrize("models", PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_has_the_target_s_law(models, shape):
    check("speculative_tree", pair(models), {"widths": [2, 1], **SHAPES[shape]}, length=3, rounds=1)


@pytest.mark.parametrize("widths", [[1, 2], [3], [1, 1, 3], [1, 2, 1], [2, 1]])
def test_trees_of_up_to_five_nodes(widths):
    parameters = {"widths": widths, "temperature": 1.3, "top_p": 0.9}
    check("speculative_tree", pair("far"), parameters, length=len(widths) + 1, rounds=1)


@pytest.mark.parametrize("models", ["far", "q has zeros"])
def test_a_tree_over_several_rounds(models):
    check("speculative_tree", pair(models), {"widths": [2], "temperature": 1.0}, length=3)


@pytest.mark.parametrize("strategy", ["speculative", "speculative_tree", "prompt_lookup"])
def test_temperature_0_leaves_one_outcome(strategy):
    models = pair("far")
    law = law_of_rounds(Exhaustive(), strategy, models, {"temperature": 0.0}, 5)
    assert law == exact_distribution(models["target"], (0,), 5, shape_of({"temperature": 0.0}))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "strategy,parameters",
    [
        ("speculative", {"num_assistant_tokens": 2}),
        ("speculative_tree", {"widths": [2, 1]}),
    ],
)
def test_with_an_end_of_text_token(strategy, parameters, shape):
    rounds = 1 if strategy == "speculative_tree" else None
    check(strategy, pair("close", frozenset({2})), {**parameters, **SHAPES[shape]}, length=3, rounds=rounds)


@pytest.mark.parametrize("models", PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eos", [frozenset(), frozenset({1})])
def test_prompt_lookup_has_the_target_s_law(models, shape, eos):
    parameters = {"prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 2, **SHAPES[shape]}
    check("prompt_lookup", pair(models, eos), parameters, length=4)


@pytest.mark.parametrize("models", PAIRS)
@pytest.mark.parametrize(
    ("shape", "verifier"),
    [
        ("chain", "block"),
        ("chain", "traversal"),
        ("chain", "K-SEQ"),
        ("chains", "K-SEQ"),
        ("chains", "token rejection with replacement"),
        ("chains", "node sampling"),
        ("widths", "traversal"),
        ("best slots", "token rejection"),
        ("best slots", "traversal"),
        ("good slots", "token rejection"),
        ("best paths", "node sampling"),
        ("expand and rerank", "node sampling"),
    ],
)
def test_parts_that_fit_together_have_the_target_s_law(models, shape, verifier):
    parts = {"shape": shape, "verifier": verifier, "depth": 2, "width": 2, "budget": 3}
    check("speculation", pair(models), {**parts, "temperature": 1.2}, length=3, rounds=1)


@pytest.mark.parametrize("models", ["q has zeros", "p has zeros"])  # the others have far more outcomes
def test_a_tree_of_draws_with_replacement_has_the_target_s_law(models):
    parts = {"shape": "widths, with replacement", "verifier": "token rejection with replacement"}
    parts |= {"depth": 2, "width": 2, "temperature": 1.2}
    check("speculation", pair(models), parts, length=3, rounds=1)


EXACT = [("chain", verifier) for verifier in ("token rejection", "block", "traversal", "K-SEQ")] + [
    ("chains", "K-SEQ"),
    ("chains", "token rejection with replacement"),
    ("chains", "node sampling"),
    ("widths", "token rejection"),
    ("widths", "traversal"),
    ("widths, with replacement", "token rejection with replacement"),
    ("best slots", "token rejection"),
    ("best slots", "traversal"),
    ("good slots", "token rejection"),
    ("good slots", "traversal"),
    ("best paths", "node sampling"),
    ("expand and rerank", "node sampling"),
]


@pytest.mark.parametrize(("shape", "verifier"), EXACT)
def test_what_an_earlier_round_looked_at_bends_nothing(shape, verifier):
    """All rounds: a draw that was thrown away must not come again for the same place."""
    models = {role: TableModel(random_table(seed, 2, 2.0), 2) for role, seed in (("target", 3), ("draft", 4))}
    parts = {"shape": shape, "verifier": verifier, "depth": 2, "width": 2, "budget": 2}
    check("speculation", models, {**parts, "temperature": 1.2}, length=3)


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("speculation", {"shape": "chain", "verifier": "block", "depth": 2}),
        ("speculation", {"shape": "chain", "verifier": "traversal", "depth": 2}),
    ],
)
def test_paths_that_are_judged_as_a_whole_over_several_rounds(strategy, parameters):
    check(strategy, pair("far"), {**parameters, "temperature": 1.2}, length=3)


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("spectr", {"num_chains": 2, "num_assistant_tokens": 2}),
        ("dyspec", {"budget": 4}),
        ("dyspec", {"budget": 4, "threshold": 0.15}),
        ("opt_tree", {"budget": 4, "delta": 0.1}),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_presets_have_the_target_s_law(strategy, parameters, shape):
    check(strategy, pair("far", frozenset({2})), {**parameters, **SHAPES[shape]}, length=3, rounds=1)
