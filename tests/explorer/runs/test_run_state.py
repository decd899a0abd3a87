"""What a page, an endpoint and a table are told of a lane."""

from decoders.callbacks import Callbacks
from decoders.lane import Lane, Limits
from decoders.registry import BADGES
from decoders.trace.events import Commit, Distribution, Propose, Step
from decoders.trace.trace import Trace
from explorer.runs import slices
from explorer.runs.run_state import Record, Run, answer
from explorer.runs.run_summary import summary
from visualizers.analysis.cost_csv import cost_table


def lane(*masses: float | None) -> Trace:
    """A sampled text whose rows leave out these masses."""
    trace = Trace("sample", "Sampling", {}, 0, {"target": "t"}, [0], {0: b"a"}, "exact in distribution")
    for node, mass in enumerate(masses, 1):
        offer = Distribution(node - 1, "target", [[0, -0.1]], 0.1, 0.3, None, 20, unseen=mass)
        events = [offer, Propose(node, node - 1, 0, -0.1, "target"), Commit([node], [-0.1])]
        trace.append(Step(node - 1, events, 0.1))
    return trace


def test_a_badge_is_told_as_far_as_it_holds():
    told = "exact within the top 20; rest mass up to .12"
    for trace, promise in ((lane(0.0031, 0.1249, 0.02), told), (lane(None, None), "exact in distribution")):
        shown = answer(Run("r", "s", [Record(trace)]), [{"view": "entropy", "ops": 0, "rows": 0}])["lanes"][0]
        same = promise == "exact in distribution"
        title = BADGES["exact in distribution"] if same else f"{promise}. {BADGES['exact in distribution']}"
        assert shown["badge"] == {"text": f"✓ {promise}", "title": title}
        assert summary(trace)["badge"] == promise and promise in cost_table([trace])


def test_a_lane_tells_how_much_of_a_long_prompt_it_has_read(tiny_model, monkeypatch):
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)
    callbacks, models = Callbacks(between=slices.between), {"target": tiny_model("llama")}
    lane = Lane("greedy", list(range(5, 35)), models, limits=Limits(2), callbacks=callbacks)
    lane.scorers["target"].piece = 8
    run, step, told = Run("r", "s", [Record.of(lane)]), slices.Sliced(lane.advance), []
    while not step.resume():
        told.append(answer(run, [{"view": "entropy", "ops": 0, "rows": 0}])["lanes"][0]["reading"])
    assert list(dict.fromkeys(filter(None, told))) == [(8, 30), (16, 30), (24, 30)] and lane.reading is None
    lane.close()
