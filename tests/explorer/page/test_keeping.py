"""What a page keeps of its run: pieces that are only joined are the file that Save run makes."""

import json

import pytest

from explorer.catalog import recorded_runs
from explorer.export import run_file
from explorer.page import keeping, save_and_open
from explorer.page_requests import Save
from explorer.runs.scheduler import Runs
from tests.explorer.runs.test_scheduler import wait_for
from tests.helpers.scripted_lane import ScriptedLane
from tests.helpers.server_calls import ask

REQUEST = {"prompt": "Once", "max_new_tokens": 400, "lanes": [{"strategy": "scripted"}]}
GROWS = {"vocabulary": "{}", "steps": "[]", "checkpoints": "[]"}


class Kept:
    """The joining that assets/web/page/keep.js does, in Python."""

    def __init__(self, runs: Runs, run: str, lanes: int):
        functions = {f.__name__: f for f in keeping.functions(runs, None)}
        self.steps, self.run, self.setup = functions["explorer_steps"], run, None
        self.since = [{"steps": 0, "words": 0} for _ in range(lanes)]
        self.parts = [{name: [] for name in GROWS} for _ in range(lanes)]
        self.heads = [""] * lanes

    def ask(self) -> bool:
        """One question; whether there is more."""
        told = ask(self.steps, {"run": self.run, "since": self.since})
        self.setup = told.get("setup", self.setup)
        for i, lane in enumerate(told["lanes"]):
            self.heads[i] = lane["head"]
            self.since[i] = {name: lane[name] for name in ("steps", "words")}
            for name, text in lane["grown"].items():
                self.parts[i][name] += [text] if text else []
        return told["more"]

    def file(self) -> bytes:
        traces = []
        for head, parts in zip(self.heads, self.parts, strict=True):
            grown = [f'"{n}":{GROWS[n][0]}{",".join(texts)}{GROWS[n][1]}' for n, texts in parts.items()]
            traces.append("{" + ",".join([head, *grown]) + "}")
        setup = json.dumps(self.setup)
        return (
            f'{{"version":1,"kind":"decoding-explorer-run","setup":{setup},"traces":[{",".join(traces)}]}}'
        ).encode()


@pytest.fixture
def house():
    """make(lane): Runs whose run has this lane; the stored example is there too."""
    made = []

    def make(lane=None):
        found = Runs(lambda request: [lane])
        found.show(recorded_runs.traces(), run_id="example", asked=recorded_runs.setup())
        made.append(found)
        return found

    yield make
    for found in made:
        found.close()


@pytest.mark.parametrize("room", [1, 700, 10**6])
def test_joined_pieces_are_the_whole_file_whatever_their_size(house, room, monkeypatch):
    monkeypatch.setattr(keeping, "MAX_EVENTS", room)
    kept, questions = Kept(house(), "example", 2), 1
    while kept.ask():
        questions += 1
    assert (questions == 1) == (room == 10**6)
    setup, traces = run_file.unpack(kept.file())
    assert [t.to_json() for t in traces] == [t.to_json() for t in recorded_runs.traces()]
    assert json.loads(kept.file())["traces"] == [t.to_json() for t in recorded_runs.traces()]
    assert setup["prompt"] == recorded_runs.PROMPT and setup["max_new_tokens"] == recorded_runs.MAX_NEW_TOKENS


def test_a_piece_of_what_has_gathered_is_a_sound_trace_by_itself(house, monkeypatch):
    monkeypatch.setattr(keeping, "MAX_EVENTS", 200)
    kept = Kept(house(), "example", 2)
    for _ in range(3):
        assert kept.ask()
        told, (_, traces) = json.loads(kept.file())["traces"], run_file.unpack(kept.file())
        for found, trace in zip(told, traces, strict=True):
            again = trace.to_json()  # what is derived is derived anew
            assert again["totals"] == found["totals"] and again["checkpoints"] == found["checkpoints"]
    assert 0 < len(told[0]["steps"]) < 40


def test_what_is_told_of_a_run_that_goes_on_is_continued_where_it_ended(house):
    runs = house(ScriptedLane([f" w{i}".encode() for i in range(80)], 0.002))
    run = runs.start(REQUEST, "a session of a page")
    kept, counts = Kept(runs, run.id, 1), []
    while run.state == "running":
        run.heard = float("inf")
        kept.ask()
        counts.append(kept.since[0]["steps"])
    kept.ask()
    assert len(set(counts)) > 2 and counts == sorted(counts)
    (found,) = json.loads(kept.file())["traces"]
    assert found == run.records[0].trace.to_json() and found["ended"] == "The script has ended."
    assert len(found["checkpoints"]) == 2


def test_a_run_that_was_stopped_says_so_in_what_is_kept(house):
    runs = house(ScriptedLane([b" w"] * 400, 0.002))
    run = runs.start(REQUEST, "a session of a page")
    wait_for(lambda: run.records[0].rows)
    runs.control(run.id, "stop")
    kept = Kept(runs, run.id, 1)
    kept.ask()
    saved = save_and_open.saved(runs, run, Save(run=run.id, form="run"))
    setup, (trace,) = run_file.unpack(kept.file())
    assert trace.ended == "Stopped by hand."
    assert trace.to_json() == run_file.unpack(saved.data)[1][0].to_json()


def test_a_page_that_was_killed_learns_what_it_needs_to_show_its_run_again(house):
    runs = house(ScriptedLane([b" w"] * 3))
    run = runs.start(REQUEST, "a session of a page", "paused")
    functions = {f.__name__: f for f in keeping.functions(runs, None)}
    found = ask(functions["explorer_again"], {"run": run.id})
    assert found["state"] == "paused" and found["setup"]["prompt"] == "Once"
    (lane,) = found["setup"]["lanes"]
    assert lane["strategy"] == found["declarations"][0]["name"] == "scripted" and lane["view"]
    assert "is gone" in ask(functions["explorer_again"], {"run": "guess"})["error"]


@pytest.mark.parametrize("since", [None, [3], [{"steps": "1", "words": 0}], [{}]])
def test_an_unusable_question_is_one_sentence(house, since):
    functions = {f.__name__: f for f in keeping.functions(house(), None)}
    told = ask(functions["explorer_steps"], {"run": "example", "since": since})
    assert told["status"] == 422 and told["refused"].startswith("since") and told["refused"].endswith(".")
