"""The page and the summary are told which of the model's own generation settings a lane used."""

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Distribution
from explorer.runs.run_state import Record, Run, answer
from explorer.runs.run_summary import summary
from visualizers.analysis import distribution_stages


def finished(generation: dict):
    row = (0.5, 0.3, 0.2)
    model = TableModel(lambda past: row, 3, generation=generation)
    return Lane("greedy", [0], {"target": model}, limits=Limits(3)).run()


def told(trace) -> dict:
    run = Run("run", "", [Record(trace)], "done")
    return answer(run, [{"view": "text", "ops": 0, "rows": 0}])["lanes"][0]


def test_the_answer_and_the_summary_name_the_settings():
    trace = finished({"repetition_penalty": 1.5})
    own = "repetition_penalty 1.5"
    badge = told(trace)["badge"]
    assert badge["text"].startswith("✓ ") and badge["text"].endswith(f", {own}")
    assert badge["title"].endswith(f". The model's own generation settings apply: {own}.")
    assert summary(trace)["model_defaults"] == {"repetition_penalty": 1.5}
    plain = finished({})
    assert "settings" not in told(plain)["badge"]["title"] and "model_defaults" not in summary(plain)


def test_what_the_processors_left_is_called_by_the_models_setting():
    trace = finished({"repetition_penalty": 1.5})
    left = [e for e in trace.steps[0].of(Distribution) if e.view == "processed"]
    assert len(left) == 1
    assert distribution_stages.title(left[0], trace.shaping, each=False) == "repetition_penalty 1.5"
