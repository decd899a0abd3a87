"""In half precision, forwards of other shapes round otherwise: what parts the lanes then is called a tie or
numerics, never a real difference.
"""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from explorer.timing import PROMPTS
from visualizers.analysis.first_difference import pair
from visualizers.analysis.lane_stats import LaneFacts


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_lossless_lanes_in_half_precision_part_at_ties_alone(dtype):
    models = {"target": load("llama-tiny", dtype=dtype), "draft": load("llama-tiny-draft", dtype=dtype)}
    compared = []
    for text in PROMPTS[3:5]:
        prompt = models["target"].encode(text)
        greedy, tree = (
            LaneFacts(Lane(strategy, prompt, models, limits=Limits(12)).run()).tokens
            for strategy in ("greedy", "speculative_tree")
        )
        compared.append(pair(greedy, tree, (1, 2)))
    kinds = {found.get("kind") for found in compared}
    assert kinds <= {None, "tie", "numerics"}  # whether any part depends on how this processor adds up
