"""RSD-S: paths drawn without replacement, and the text's law by counting."""

import itertools
from collections import Counter

import pytest
import torch

from decoders.chooser import Random
from decoders.lane import Lane, Limits
from decoders.logits.gumbel import below
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.interfaces import drafted
from decoders.speculative.methods.rsd_s import stochastic_beam
from decoders.testing import random_table, shape_of
from tests.helpers.losslessness import statistics


def test_the_largest_perturbed_child_has_its_parent_s_value():
    """And the order of the children, and who has none, stay as they were."""
    scores = torch.tensor([0.3, -1.0, 2.0, -torch.inf], dtype=torch.float64)
    shifted = below(-0.7, scores)
    assert shifted[2] == -0.7 and shifted[3] == -torch.inf
    assert shifted[2] > shifted[0] > shifted[1]
    assert below(50.0, scores)[2] == 50.0  # no overflow either way
    assert below(-800.0, scores)[2] == -800.0


def test_the_noise_under_a_known_maximum_is_distributed_as_gumbels_that_have_it():
    """Kool et al.: Gumbels conditioned on their maximum being G. Compared with rejection in bins of G."""
    logs = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64).log()
    generator = torch.Generator().manual_seed(0)
    free = logs - (-torch.rand(60000, 3, generator=generator, dtype=torch.float64).log()).log()
    near = free[(free.max(1).values - 0.5).abs() < 0.05]
    other = logs - (-torch.rand(len(near), 3, generator=generator, dtype=torch.float64).log()).log()
    bound = torch.stack([below(0.5, row) for row in other])
    for quantile in (0.25, 0.5, 0.75):  # of the second largest
        a, b = (rows.sort(1).values[:, 1].quantile(quantile) for rows in (near, bound))
        assert float(a) == pytest.approx(float(b), abs=0.08)


def drafts(width: int, depth: int, seed: int, temperature: float = 1.0):
    model = TableModel(random_table(2, vocabulary=4), 4)
    models = {"target": model, "draft": model}
    lane = Lane("rsd_s", [0], models, {"temperature": 1.0}, limits=Limits(9), chooser=Random(seed))
    draft = drafted(DRAFT_MODEL, stochastic_beam(width, depth, temperature)).propose(lane)
    return lane, draft


def test_paths_are_drawn_without_replacement():
    """Two of the paths of length two: first q(a), then q(b) / (1 - q(a)), as counted."""
    counts = Counter()
    for seed in range(1000):
        lane, draft = drafts(2, 2, seed)
        deep = [n for n in draft.nodes if lane.tree.depths[n] == 2]
        assert len({tuple(lane.tree.text(n)) for n in deep}) == 2
        counts[tuple(sorted(tuple(lane.tree.text(n)[1:]) for n in deep))] += 1
    law = exact_distribution(TableModel(random_table(2, vocabulary=4), 4), (0,), 2, shape_of({}))
    wanted = {
        tuple(sorted(pair)): sum(law[x] * law[y] / (1 - law[x]) for x, y in itertools.permutations(pair))
        for pair in itertools.combinations(law, 2)
    }
    tail, far, bound = statistics(counts, wanted)
    assert tail > 1e-3 and far < 1.5 * bound


def test_the_text_has_the_target_s_law():
    """Of a shaped distribution: a plain one is the easier case."""
    shape = {"temperature": 0.8, "top_p": 0.9}
    models = {"target": TableModel(random_table(3), 3), "draft": TableModel(random_table(4), 3)}
    counts = Counter()
    for seed in range(800):
        parameters = {"beam_width": 3, "num_assistant_tokens": 2, **shape}
        lane = Lane("rsd_s", [0], models, parameters, seed, limits=Limits(3))
        counts[tuple(lane.run().output())] += 1
    tail, far, bound = statistics(counts, exact_distribution(models["target"], (0,), 3, shape_of(shape)))
    assert tail > 1e-3 and far < 1.5 * bound


def test_a_beam_of_one_is_a_chain_and_no_level_is_wider_than_the_beam():
    lane, draft = drafts(1, 3, 0)
    assert [lane.tree.depths[n] for n in draft.nodes] == [1, 2, 3]
    lane, draft = drafts(5, 3, 1)
    wide = Counter(lane.tree.depths[n] for n in draft.nodes)
    assert wide[1] == 4 and wide[2] == wide[3] == 5  # four tokens exist
    for parent, children in draft.children.items():
        assert len({lane.tree.tokens[n] for n in children}) == len(children), parent


def test_without_chance_it_is_a_plain_beam():
    lane, draft = drafts(3, 2, 0, temperature=0.0)
    law = exact_distribution(TableModel(random_table(2, vocabulary=4), 4), (0,), 2, shape_of({}))
    deep = [tuple(lane.tree.text(n)[1:]) for n in draft.nodes if lane.tree.depths[n] == 2]
    first = exact_distribution(TableModel(random_table(2, vocabulary=4), 4), (0,), 1, shape_of({}))
    kept = {token for (token,) in sorted(first, key=first.get)[-3:]}
    wanted = sorted((path for path in law if path[0] in kept), key=law.get)[-3:]
    assert sorted(deep) == sorted(wanted)
