"""Which layers a draft can do without: searches whose scores are looked up, and when they find the best."""

from itertools import combinations

import torch

from explorer.experiments import find_stored
from explorer.experiments.evolved_drafts import Looked, until, whole_layers
from explorer.experiments.reading import rows_of

LAYERS, DROPS = 6, 3
SETS = {whole_layers(some): at for at, some in enumerate(combinations(range(LAYERS), DROPS))}


def looked(worth: list[float]) -> Looked:
    """Scores [sets, 4 rows] that are the sum of what the left-out layers are worth, alike on all rows."""
    return Looked(SETS, torch.tensor([[sum(worth[at] for at in one.mlp)] * 4 for one in SETS]))


def test_a_search_ends_at_the_best_of_all_sets_and_says_after_how_many():
    found = looked([3.0, 0.1, 2.0, 0.2, 0.3, 1.0])
    assert found.optimum == whole_layers((1, 3, 4))
    history = found.search(LAYERS, DROPS, 0, True)
    sets = until(history, found.optimum)
    assert sets in [one.scored for one in history]
    before = [one for one in history if one.scored < sets]
    assert all(one.parent != found.optimum for one in before)


def test_a_search_that_ends_elsewhere_has_not_found_it():
    found = looked([3.0, 0.1, 2.0, 0.2, 0.3, 1.0])
    history = found.search(LAYERS, DROPS, 0, True)
    assert until(history, whole_layers((0, 1, 2))) is None


def test_the_stored_answer_has_many_seeds_of_evolution_and_of_random_search():
    rows = {row["chosen"]: row for row in rows_of(find_stored("evolved-drafts"))}
    evolved, chance = rows["evolved"], rows["random search"]
    assert evolved["seeds"] == chance["seeds"] >= 20
    assert 0 < chance["found the optimum"] < evolved["found the optimum"] <= evolved["seeds"]
    assert evolved["sets until then"] < 312
