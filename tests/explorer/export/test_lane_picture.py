"""Pictures and reopened files carry every cost that the page shows of a running lane."""

from decoders.trace.trace import from_json
from explorer.catalog import recorded_runs
from explorer.export.lane_picture import costs_text, picture, slide
from explorer.runs.view_cache import row
from visualizers.analysis.cost_summary import strip, table_row


def test_the_first_run_knows_its_slots_and_so_do_its_pictures_and_a_reopened_trace():
    for trace in recorded_runs.traces():
        shown = {entry["name"]: entry["label"] for entry in strip(trace.costs)}
        assert int(shown["KV slots"]) == trace.steps[-1].slots
        words = f"{shown['KV slots']} KV slots"
        assert words in costs_text(trace, None)
        view = "beam_tree" if trace.strategy == "beam" else "draft_rounds"
        assert words in picture(trace, view) and words in slide(trace, view)
        again = from_json(trace.to_json())
        assert strip(again.costs) == strip(trace.costs) and table_row(again.costs) == table_row(trace.costs)
        assert row(again.costs, 0.0, None)["cost"] == [[e["name"], e["label"]] for e in strip(trace.costs)]


def test_a_picture_of_a_step_has_the_slots_of_that_step():
    (beam, _) = recorded_runs.traces()
    assert f"{beam.steps[3].slots} KV slots" in costs_text(beam, 4)
