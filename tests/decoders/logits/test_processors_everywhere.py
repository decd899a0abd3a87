"""Whatever processors are asked for, p and q have them alike: texts and laws are those of drawing one by one.

The processors look at the tokens so far, so a drafted token's own path must be read, not the text before it.
`sample`, whose processors are compared with `generate` elsewhere, says what is right.
"""

import pytest

from decoders import registry
from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import distance, random_table
from tests.helpers.losslessness import law_of_rounds

GREEDILY = {
    "penalties and words": (
        [7],
        {
            **{"repetition_penalty": 1.8, "no_repeat_ngram_size": 2, "sequence_bias": "a: 4, #7: -2"},
            **{"suppress_tokens": "#172, #36", "begin_suppress_tokens": "#176", "max_length": 12},
        },
    ),
    "lengths and ends": (
        [200, 3, 3, 200, 3, 3, 200],
        {
            **{"min_new_tokens": 9, "exponential_decay_length_penalty": [6.0, 1.6]},
            **{"stop_strings": '\\n, d, "~"', "eos_token_id": "#10, #151"},
        },
    ),
    "of other engines": (
        [7],
        {"dry_multiplier": 2.0, "dry_allowed_length": 1, "watermark_bias": 3.0, "top_n_sigma": 2.0},
    ),
}
DRAWN = {
    "penalty": {"repetition_penalty": 1.7, "temperature": 1.2},
    "truncated": {"min_p": 0.3, "typical_p": 0.95, "eta_cutoff": 0.05, "temperature": 0.9},
    "of other engines": {
        "top_n_sigma": 1.1,
        "dry_multiplier": 0.7,
        "dry_allowed_length": 1,
        "temperature": 1.1,
    },
    "no pair twice": {"no_repeat_ngram_size": 2, "temperature": 1.0},
}
LOSSLESS = [
    name
    for name, strategy in registry.strategies().items()
    if {"repetition_penalty", "temperature"} <= {p.name for p in strategy.parameters}
    and strategy.badge(strategy.check({"temperature": 0.0})) == "lossless: equal to greedy"
]


def written(strategy: str, models: dict, prompt: list[int], processors: dict) -> list[int]:
    given = {"temperature": 0.0, **processors}
    return Lane(strategy, list(prompt), models, given, limits=Limits(12)).run().output()


@pytest.fixture(scope="module")
def one_by_one():
    """one_by_one(models): what `sample` writes to each of GREEDILY, once for each target."""
    kept = {}

    def get(models: dict) -> list[list[int]]:
        target = models["target"]
        if target.name not in kept:
            texts = [written("sample", models, *asked) for asked in GREEDILY.values()]
            plain = [written("sample", models, prompt, {}) for prompt, _ in GREEDILY.values()]
            assert sum(text != other for text, other in zip(texts, plain, strict=True)) >= 2
            kept[target.name] = texts
        return kept[target.name]

    return get


@pytest.mark.parametrize("name", LOSSLESS, scope="module")
def test_text_is_greedy_s_with_the_same_processors(name, target_for, tiny_model, one_by_one):
    models = {"target": target_for(name), "draft": tiny_model("llama", 1)}
    for (prompt, processors), expected in zip(GREEDILY.values(), one_by_one(models), strict=True):
        assert written(name, models, prompt, processors) == expected


def test_every_lossless_strategy_takes_them():
    promised = {
        name
        for name, one in registry.strategies().items()
        if one.badge(one.check({})) == "lossless: equal to greedy"
    }
    assert promised - set(LOSSLESS) == {"jacobi", "eqspec", "exspec"}  # which never draw


@pytest.mark.parametrize("asked", DRAWN)
@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("speculative", {"num_assistant_tokens": 2}),
        ("speculative_tree", {"widths": [2]}),
        ("prompt_lookup", {"prompt_lookup_num_tokens": 2}),
        ("speculation", {"shape": "chain", "verifier": "block", "depth": 2}),
        ("speculation", {"shape": "chain", "verifier": "traversal", "depth": 2}),
        ("speculation", {"shape": "chains", "verifier": "K-SEQ", "depth": 2, "width": 2}),
        ("speculation", {"shape": "best slots", "verifier": "token rejection", "budget": 2}),
        ("speculation", {"shape": "expand and rerank", "verifier": "node sampling", "budget": 2, "depth": 2}),
        ("dyspec", {"budget": 2}),
        ("opt_tree", {"budget": 2}),
        ("sjd", {}),
        ("aggressive", {}),
    ],
)
def test_the_law_is_that_of_drawing_one_token_at_a_time(strategy, parameters, asked):
    words = 2 if parameters.get("verifier") == "K-SEQ" else 3  # which has very many outcomes
    tables = {"target": random_table(3, words, 2.0), "draft": random_table(4, words, 2.0)}
    models = {role: TableModel(table, words) for role, table in tables.items()}
    expected = law_of_rounds(Exhaustive(), "sample", models, DRAWN[asked], 3)
    found = law_of_rounds(Exhaustive(), strategy, models, {**parameters, **DRAWN[asked]}, 3)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    assert distance(found, expected) < 1e-12
