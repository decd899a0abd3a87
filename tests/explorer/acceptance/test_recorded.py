"""Traces of vLLM in the report, the Microscope, the CSV and the pictures of rounds: nothing is decoded
again.
"""

import csv
import io
import json

import pytest

from decoders.refusal import Refusal
from decoders.trace.events import Verdict
from decoders.watch.vllm.requests import Requests
from decoders.watch.vllm.runner import RunnerRecorder
from decoders.watch.vllm.spool import SpoolReader
from explorer.acceptance.recorded import report
from explorer.cli import main
from explorer.export.lane_picture import picture
from tests.helpers import vllm_stand_in as stand_in
from visualizers.analysis.drafted_tokens import drafted_csv
from visualizers.analysis.speculation_report import microscope


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Traces of three requests that drew their tokens, with drafts of which no probability is known."""
    stand_in.install(monkeypatch)
    params = stand_in.params(temperature=0.8, max_tokens=1000)
    texts = {f"request-{at}": stand_in.Text(params, [at + 1, at + 2]) for at in range(3)}
    runner = stand_in.Runner(texts, temperature=0.8)
    own = RunnerRecorder(runner, tmp_path / "spool", 20, stand_in.ENGINE)
    for _ in range(12):
        runner.step()
    own.close()
    requests = Requests(lambda _: lambda token: f" w{token}".encode())
    requests.read(SpoolReader(tmp_path / "spool").records())
    for at, one in enumerate(requests.all):
        one.trace.save(tmp_path / f"{at}.trace.json")
    return tmp_path, [one.trace for one in requests.all]


def test_a_folder_of_traces_is_reported_on(folder, capsys):
    place, traces = folder
    made = report(place)
    (draft,) = made["drafts"]
    values = {one["name"]: one["value"] for one in draft["metrics"]}
    verdicts = [v for trace in traces for step in trace.steps for v in step.of(Verdict)]
    drafted = ("accepted", "rejected", "never reached")
    assert (
        values["num_draft_tokens"] == sum(v.status in drafted for v in verdicts) == 3 * 11 * stand_in.DRAFTED
    )
    assert values["num_accepted_tokens"] == sum(v.status == "accepted" for v in verdicts)
    assert (made["target"], draft["name"], len(made["prompts"])) == ("a table", "another", 3)
    assert [len(text["tokens"]) for text in made["prompts"]] == [len(trace.output()) for trace in traces]
    main(["acceptance", "--traces", str(place), "--json"])
    assert json.loads(capsys.readouterr().out)["drafts"][0]["metrics"] == draft["metrics"]


def test_the_page_is_written(folder):
    place, _ = folder
    main(["acceptance", "--traces", str(place), "--out", str(place / "report.html")])
    assert "num_accepted_tokens_per_pos" in (place / "report.html").read_text("utf-8")


def test_what_cannot_be_reported_on_is_refused(folder, tmp_path):
    place, traces = folder
    with pytest.raises(Refusal, match="no file or folder"):
        report(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match="has drafted anything"):
        report(tmp_path / "empty")
    traces[0].models["target"] = "another table"
    traces[0].save(place / "3.trace.json")
    with pytest.raises(Refusal, match="several targets"):
        report(place)


def test_microscope_and_csv_read_them(folder):
    trace = folder[1][0]
    seen = microscope(trace)
    rows = list(csv.DictReader(io.StringIO(drafted_csv(trace))))
    values = {one["name"]: one["value"] for one in seen["metrics"]}
    assert len(rows) == values["num_draft_tokens"]
    tested = [row for row in rows if row["u"]]
    assert tested and all(row["q"] == "" and row["acceptance"] == row["p"] for row in tested)
    assert all("counts as certain (q = 1)" in row["reason"] for row in tested)


@pytest.mark.parametrize("view", ["draft_rounds", "one_round", "timeline", "entropy", "text"])
def test_the_views_draw_them(folder, view):
    drawn = picture(folder[1][0], view, 5, "light")
    assert "Speculative decoding (vLLM)" in drawn
    if view == "one_round":
        assert "no q" in drawn
