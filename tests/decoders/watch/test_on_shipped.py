"""Watched calls of the shipped pair: pictures, Compare, Microscope, and Rejections."""

import copy

import pytest
import torch

from decoders import watch
from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.events import Distribution, Propose, Verdict
from explorer.export.run_file import container, pack, unpack
from explorer.inspector.knobs import OTHER_SEED, knobs
from tests.helpers.shipped_pair import PROMPTS, pair
from tests.helpers.watched_calls import told
from visualizers.analysis.comparison import compare
from visualizers.analysis.drafted_tokens import drafted_tokens
from visualizers.analysis.speculation_report import microscope

SHORT = {"max_new_tokens": 12}


@pytest.fixture(scope="module")
def run():
    """Beam search, sampling and assisted sampling of the same prompt, watched."""
    target, draft = pair()["target"], copy.deepcopy(pair()["draft"].model)
    draft.generation_config.num_assistant_tokens = 4
    draft.generation_config.assistant_confidence_threshold = 0.0
    ids = torch.tensor([target.encode(PROMPTS[0])])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pad_token_id": 0, **SHORT}
    torch.manual_seed(1)
    with watch(target.model, target.tokenizer) as watched:
        target.model.generate(**inputs, num_beams=4, do_sample=False)
        target.model.generate(**inputs, do_sample=True, temperature=0.8, top_p=0.9)
        target.model.generate(**inputs, do_sample=True, top_k=0, assistant_model=draft)
    return watched


def test_every_view_of_the_strategies_draws_it(run):
    for found in run.traces:
        for view in strategies()[found.strategy].views:
            assert found.figure(view).data, (found.strategy, view)


def test_a_drawn_token_is_not_said_to_be_chosen_by_its_score(run):
    shown = " ".join(str(drawn.text) for drawn in run.traces[1].figure("sampler").data)
    shown += " ".join(note.text for note in run.traces[1].figure("sampler").layout.annotations)
    assert "was drawn; with which number is not recorded" in shown and "by its score" not in shown
    assert knobs(run.traces[1]) == knobs(run.traces[2]) == {"why": OTHER_SEED}


def test_compare_finds_the_same_tree_in_our_own_lane(run):
    target, watched = pair()["target"], run.traces[0]
    lane = Lane(
        "beam", target.encode(PROMPTS[0]), {"target": target}, {"num_beams": 4}, limits=Limits(12)
    ).run()
    assert told(watched, Propose, Verdict, Distribution) == told(lane, Propose, Verdict, Distribution)
    found = compare([lane, watched])
    assert found["sentence"] == "Lanes 1 and 2 write the same 12 tokens."
    assert [one["label"] for one in found["lanes"]] == ["Beam search", "Beam search (generate)"]
    assert watched.figure("beam_tree").data == lane.figure("beam_tree").data


def test_microscope_and_rejections_read_its_rounds(run):
    found = run.trace
    report, rows = microscope(found), drafted_tokens(found)
    values = {metric["name"]: metric["value"] for metric in report["metrics"]}
    assert values["draft_acceptance_rate"] == found.costs.accepted / found.costs.proposed
    assert report["reliability"] and report["drafting"]["draft"] > 0
    rejected = [row for row in rows if row["fate"] == "rejected"]
    assert rejected and len(rows) == found.costs.proposed
    for row in rejected:
        assert row["u"] > row["p"] / row["q"] and row["cause"] and row["instead"]


def test_it_is_saved_and_opened_again(run):
    setup, traces = unpack(pack(container(run.traces)))
    assert [found.to_json() for found in traces] == [found.to_json() for found in run.traces]
    assert [lane["strategy"] for lane in setup["lanes"]] == ["beam", "sample", "speculative"]
