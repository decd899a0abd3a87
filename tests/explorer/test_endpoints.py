"""The endpoints for scripts, through a real Gradio client."""

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace import from_json
from explorer.lanes import lane_maker
from explorer.loading import Loader
from explorer.page import build
from explorer.runs import Runs
from tests import tiny


@pytest.fixture(scope="module")
def served():
    """(client, models) of the app on tiny models."""
    loader = Loader("tiny", "tiny-draft")
    loader.models = {"target": tiny.make(seed=0, endings=0.0), "draft": tiny.make(seed=1, endings=0.0)}
    loader.state = "ready"
    loader.done.set()
    runs = Runs(lane_maker(loader))
    demo, launch = build(runs, loader)
    _, address, _ = demo.launch(prevent_thread_lock=True, **launch)
    yield Client(address, verbose=False, analytics_enabled=False), loader.models
    demo.close()
    runs.close()


def test_decode_gives_what_the_library_gives(served):
    client, models = served
    found = client.predict("Once", "speculative", {"num_assistant_tokens": 3}, 12, 5, api_name="/decode")
    lane = Lane(
        "speculative", models["target"].encode("Once"), models, {"num_assistant_tokens": 3}, 5, Limits(12)
    )
    expected = lane.run()
    assert found["output_tokens"] == expected.output() and len(found["output_tokens"]) == 12
    assert found["text"] == expected.text() and found["ended"] == "Reached max_new_tokens = 12."
    assert found["totals"]["target_forwards"] == expected.costs.totals()["target_forwards"]


def test_a_trace_can_be_fetched_and_read_back(served):
    trace = from_json(served[0].predict("Once", "greedy", {}, 6, 0, api_name="/trace"))
    assert trace.strategy == "greedy" and len(trace.output()) == 6


def test_strategies_are_listed(served):
    assert [s["name"] for s in served[0].predict(api_name="/strategies")] == list(strategies())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("", "greedy"), "prompt is empty"),
        (("a", "magic"), "no strategy 'magic'"),
        (("a", "beam", {"num_beams": 0}), "num_beams must be"),
    ],
)
def test_errors_are_sentences(served, given, says):
    with pytest.raises(AppError, match=says):
        served[0].predict(*given, api_name="/decode")
