"""Links, saved runs, requests and commands that call a view by its former name get that view."""

import base64

from explorer import cli
from explorer.catalog import recorded_runs
from explorer.export import run_file
from explorer.page import links, save_and_open
from explorer.page_requests import Pull
from explorer.runs.scheduler import Runs
from explorer.schema import read
from tests.helpers.server_calls import ask

LANE = {"strategy": "speculative", "parameters": {}, "seed": 0, "view": "draft_round"}
SESSION = "a session of a test"


def test_a_link():
    assert links.check_lane(LANE)["view"] == "one_round"


def test_the_request_of_a_page():
    asked = {"run": "a", "cursors": [{"view": "draft_round", "ops": 0, "rows": 0}]}
    assert read(Pull, asked).cursors[0].view == "one_round"


def test_a_saved_run_and_what_is_saved_of_it():
    setup, traces = recorded_runs.setup(), recorded_runs.traces()
    for lane, view in zip(setup["lanes"], ("beam_tree", "draft_round"), strict=True):
        lane["view"] = view
    file = run_file.pack(run_file.container(traces, setup))
    runs = Runs(lambda request: [])
    try:
        opened = save_and_open.open_file(runs, file, SESSION)
        assert [lane["view"] for lane in opened["setup"]["lanes"]] == ["beam_tree", "one_round"]
        save = next(f for f in save_and_open.functions(runs, None) if f.__name__ == "explorer_save")
        asked = {"session": SESSION, "run": opened["run"], "form": "picture", "lane": 1}
        pictures = [ask(save, asked | {"views": [None, view]}) for view in ("draft_tree", "draft_rounds")]
        assert pictures[0] == pictures[1] and "Draft rounds" in base64.b64decode(pictures[0]["data"]).decode()
    finally:
        runs.close()


def test_a_command(capsys, tmp_path):
    out = tmp_path / "rounds.html"
    run = ("run", "--strategy", "speculative", "--prompt", "Once", "--max-new-tokens", "4")
    cli.main([*run, "--figure", "draft_tree", "--out", str(out)])
    capsys.readouterr()
    assert "Draft rounds" in out.read_text("utf-8")
