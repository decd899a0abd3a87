"""The table of exact posteriors of a flow."""

import pytest

from decoders.models.tabular_flow import TabularFlow


def test_posteriors_by_bayes():
    """Two equal bits at t 1/2: each is seen right with probability 3/4."""
    table = TabularFlow({(0, 0): 0.5, (1, 1): 0.5}, 2)
    assert table.posterior([0, 1], 0.5)[0].tolist() == pytest.approx([0.5, 0.5])
    assert table.posterior([0, 0], 0.5)[1].tolist() == pytest.approx([0.9, 0.1])
    assert table.posterior([0, 0], 0.0)[0].tolist() == pytest.approx([0.5, 0.5])
