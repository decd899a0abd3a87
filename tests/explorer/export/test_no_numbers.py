"""Traces of lanes that ended at scores that are no numbers: every view draws them, and a page shows them."""

import pytest
import torch

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.refusal import Refusal
from decoders.trace.endings import without_numbers
from explorer.acceptance.drafters import drafter
from explorer.acceptance.measuring import Settings, report
from explorer.acceptance.prompts import Prompt
from explorer.export.lane_picture import picture
from explorer.export.replay_page import replay_html
from tests.helpers import tiny_models
from tests.laws.running import PROMPTS, damaged, start


def broken_off(name: str, models: dict):
    """The trace of a lane whose target has no numbers for the second token that it writes."""
    written = start(name, models).run().output()
    return start(name, models | {"target": damaged(models["target"], written[:2][-1])}).run()


def test_every_view_draws_a_lane_that_ended_in_the_middle(target_for, tiny_model):
    drawn = set()
    for name, strategy in registry.strategies().items():
        if drawn.issuperset(strategy.views) or strategy.follows:
            continue
        found = broken_off(name, {"target": target_for(name), "draft": tiny_model("llama", 1)})
        for view in strategy.views:
            assert picture(found, view)
        drawn.update(strategy.views)
    assert len(drawn) > 50


def test_a_page_of_such_a_lane_says_why_it_ended(tiny_model):
    found = broken_off("speculative", {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)})
    assert without_numbers(found.ended) and found.output() and "'tiny-llama'" in found.ended
    assert replay_html([found])


@pytest.mark.parametrize("given", [{}, {"begin": {"tokens": [41, 43, 44], "forced": [1]}}])
def test_an_overflow_of_float16_and_given_tokens_too(given):
    """Weights that float32 could hold."""
    model = tiny_models.make("llama", dtype=torch.float16)
    model.model.model.embed_tokens.weight.data[43] = 60_000
    model.model.model.layers[0].mlp.down_proj.weight.data[:] = 60_000
    lane = Lane("greedy", [40, 43] if not given else [40], {"target": model}, limits=Limits(6), **given)
    assert without_numbers(lane.run().ended) and not any("nan" in str(s) for s in lane.trace.steps)


def test_heads_without_numbers_are_named_as_such():
    model = tiny_models.make("llama")
    for weight in model.heads["eagle"].parameters():
        weight.data.fill_(torch.nan)
    found = Lane("eagle", [*PROMPTS[0]], {"target": model}, limits=Limits(6)).run()
    assert found.ended.startswith("The scores of heads that draft for 'tiny-llama' are not finite")


def test_a_report_of_acceptance_refuses_it(tmp_path):
    made = tiny_models.make("llama")
    made.model.get_output_embeddings().weight.data[7] = torch.nan
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    target = load(str(tmp_path), "cpu")
    with pytest.raises(Refusal, match="Prompt 1: The scores of the target"):
        report(target, [drafter("prompt_lookup", target, "cpu")], [Prompt("the cat")], Settings(4))
