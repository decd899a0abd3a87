"""Branches: another token in the place of one, in a lane of its own beside the others."""

import asyncio

import pytest

from decoders.trace import given_tokens
from decoders.trace.trace import from_json
from explorer.inspector.token_facts import inspect
from explorer.page.branch import functions
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES, check
from tests.helpers import server_calls, tiny_models

LANES = [{"strategy": "greedy"}, {"strategy": "sample", "parameters": {"temperature": 0.9}, "seed": 5}]
ME, YOU = "me" * 12, "you" * 8  # sessions are secrets, so they are long
REQUEST = {"prompt": "Once the cat", "max_new_tokens": 8, "lanes": LANES}


def finish(runs: Runs, run) -> None:
    every = [{"view": "text", "ops": 2**31, "rows": 2**31} for _ in run.records]
    while run.state == "running":
        asyncio.run(runs.pull(run.id, every, 2.0, "running"))


@pytest.fixture
def run(runs):
    made = runs.start(check(REQUEST), ME)
    finish(runs, made)
    return made


def ask(runs, loader, run, **request) -> dict:
    """What the page is told."""
    request = {"run": run.id, "lane": 0, "max_new_tokens": 8, "session": ME, **request}
    return server_calls.ask(functions(runs, loader)[0], request)


def output_nodes(trace) -> list[int]:
    return [n for step in trace.steps for e in step.events if type(e).__name__ == "Commit" for n in e.nodes]


def test_a_branch_keeps_the_text_before_forces_a_token_and_goes_on_with_strategy_and_seed(runs, loader, run):
    parent = run.records[1].trace
    answer = ask(runs, loader, run, lane=1, node=output_nodes(parent)[3], token=65)
    finish(runs, run)
    assert answer["run"] == run.id and answer["lane"] == 2 and len(run.records) == 3
    made = run.records[2].trace
    assert made.output()[:4] == [*parent.output()[:3], 65] and len(made.output()) == 8
    assert (made.strategy, made.seed, made.prompt) == ("sample", 5, parent.prompt)
    assert answer["setup"] == {
        "strategy": "sample",
        "parameters": {"temperature": 0.9},
        "seed": 5,
        "begin": {"tokens": [*parent.output()[:3], 65], "forced": [3]},
    }
    assert answer["flag"] == "token 4: b"
    assert run.state == "done" and parent.output() == run.records[1].trace.output()


def test_forcing_what_the_parent_chose_changes_nothing_but_the_mark(runs, loader, run):
    parent = run.records[1].trace
    ask(runs, loader, run, lane=1, node=output_nodes(parent)[2], token=parent.output()[2])
    finish(runs, run)
    assert run.records[2].trace.output() == parent.output()


def test_the_inspector_shows_from_what_a_token_was_forced(runs, loader, run):
    parent = run.records[1].trace
    node = output_nodes(parent)[3]
    was = inspect(parent, node)["stages"]
    other = next(row for row in was[0]["rows"] if not row["here"])
    ask(runs, loader, run, lane=1, node=node, token=other["id"])
    finish(runs, run)
    found = inspect(run.records[2].trace, len(parent.prompt) + 3)
    assert found["source"] == "person" and found["state"] == "forced"
    assert [s["title"] for s in found["stages"]] == [s["title"] for s in was]
    (now, before) = found["stages"][0], was[0]
    assert now["rank"] == 1 + [row["id"] for row in before["rows"]].index(other["id"])
    assert now["p"] == pytest.approx(other["p"], rel=1e-3)
    assert now["entropy"] == pytest.approx(before["entropy"], rel=1e-3)
    (verdict,) = found["verdicts"]
    assert verdict["status"] == "forced" and "Inserted by a person" in verdict["reason"]


def test_a_forced_token_stays_marked_in_branches_of_branches(runs, loader, run):
    ask(runs, loader, run, node=output_nodes(run.records[0].trace)[1], token=65)
    finish(runs, run)
    second = run.records[2].trace
    ask(runs, loader, run, lane=2, node=output_nodes(second)[4], token=66)
    finish(runs, run)
    assert given_tokens.of(run.records[3].trace)["forced"] == [1, 4]


def test_typed_text_is_cut_into_tokens_and_stands_in_the_place_of_the_token(runs, loader, run):
    answer = ask(runs, loader, run, node=output_nodes(run.records[0].trace)[2], text=" a thé")
    finish(runs, run)
    made, forced = run.records[2].trace, answer["setup"]["begin"]["forced"]
    assert forced[0] == 2
    typed = b"".join(made.vocabulary[made.output()[place]] for place in forced)
    assert typed == " a thé".encode()


def test_a_saved_setup_with_a_branch_runs_again(runs, loader, run):
    answer = ask(runs, loader, run, node=output_nodes(run.records[0].trace)[3], token=65)
    finish(runs, run)
    again = runs.start(check({**REQUEST, "lanes": [answer["setup"]]}), ME)
    finish(runs, again)
    assert again.records[0].trace.output() == run.records[2].trace.output()


def test_a_stored_run_is_copied_first(runs, loader, run):
    traces = [from_json(record.trace.to_json()) for record in run.records]
    stored = runs.show(traces, run_id="example")
    answer = ask(runs, loader, stored, node=output_nodes(traces[0])[3], token=65, session=YOU)
    assert answer["run"] != "example" and len(stored.records) == 2
    mine = runs.find(answer["run"])
    finish(runs, mine)
    assert mine.session == YOU and len(mine.records) == 3 and mine.records[2].trace.output()[3] == 65


def test_four_lanes_are_the_most_and_one_can_be_replaced(runs, loader, run):
    node = output_nodes(run.records[0].trace)[1]
    for token in (65, 66):
        ask(runs, loader, run, node=node, token=token)
    assert len(run.records) == MAX_LANES
    full = "A run has at most 4 lanes: remove one with ×, then branch again."
    assert ask(runs, loader, run, node=node, token=67) == {"error": full}
    assert ask(runs, loader, run, node=node, token=67, replace=3)["lane"] == 3
    finish(runs, run)
    assert len(run.records) == MAX_LANES and run.records[3].trace.output()[1] == 67
    assert "no lane 9" in ask(runs, loader, run, node=node, token=67, replace=8)["error"]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"node": 0, "token": 65}, "part of the prompt"),
        ({"node": 99999, "token": 65}, "not a token of the trace"),
        ({"token": 65_000}, "no token 65,000"),
        ({"text": ""}, "Type the text"),
        ({"text": "x" * 2001}, "at most 2,000"),
        ({"text": "a b c d e f g h i j"}, "Nothing would be left to decode"),
        ({"token": 65, "max_new_tokens": 0}, "max_new_tokens must be"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(request_, says, runs, loader, run):
    given = {"node": output_nodes(run.records[0].trace)[1], **request_}
    answer = ask(runs, loader, run, **given)
    assert says in answer["error"] and "\n" not in answer["error"]
    assert len(run.records) == 2 and run.state == "done"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"token": "65"}, "token must be a whole number, not '65'."),
        ({}, "A branch names either a token or a text."),
    ],
)
def test_what_no_page_asks_for_is_refused(request_, says, runs, loader, run):
    answer = ask(runs, loader, run, node=4, **request_)
    assert answer == {"refused": says, "status": 422} and len(run.records) == 2


def test_a_trace_of_other_models_cannot_be_branched_and_says_which(runs, loader, run):
    record = run.records[0].trace.to_json()
    record["models"] = {"target": "another"}
    other = runs.show([from_json(record)], ME)
    answer = ask(runs, loader, other, node=output_nodes(run.records[0].trace)[1], token=65)
    assert "decoded with the target model another" in answer["error"]


@pytest.mark.parametrize("given", [7, {"tokens": "x"}, {"tokens": [1], "forced": [1]}, {"tokens": [1] * 600}])
def test_a_setups_begin_is_checked(given):
    with pytest.raises(ValueError, match="Lane 1: "):
        check({**REQUEST, "lanes": [{"strategy": "greedy", "begin": given}]})


@pytest.fixture
def canvas_run(runs, loader):
    """A canvas and a window of masks, of models that come beside the target."""
    kinds = {"diffusion": tiny_models.make("masked"), "wedlm": tiny_models.make("wedlm")}
    loader.wait()["target"]._companions.update(kinds)
    lanes = [{"strategy": "masked_diffusion", "parameters": {"fixed_words": "7: c"}}, {"strategy": "wedlm"}]
    made = runs.start(check({**REQUEST, "lanes": lanes}), ME)
    finish(runs, made)
    return made


def test_a_word_is_fixed_where_a_person_clicks_a_canvas(runs, loader, canvas_run):
    """Its place counts new tokens; the other words stay, and the text has it."""
    parent = canvas_run.records[0].trace
    answer = ask(runs, loader, canvas_run, position=len(parent.prompt) + 1, text="dog")
    finish(runs, canvas_run)
    made = canvas_run.records[answer["lane"]].trace
    assert answer["setup"]["parameters"]["fixed_words"] == "7: c; 2: dog" and "begin" not in answer["setup"]
    fixed = [
        e for step in made.steps for e in step.events if type(e).__name__ == "Cell" and e.state == "fixed"
    ]
    assert fixed[0].position == len(parent.prompt) + 1
    assert " dog" in b"".join(made.vocabulary[e.token] for e in fixed).decode()


def test_a_clicked_token_is_fixed_exactly(runs, loader, canvas_run):
    token = loader.wait()["target"].encode_after([], "b")[0]
    parent = canvas_run.records[0].trace
    parent.vocabulary[token] = b"b"
    answer = ask(runs, loader, canvas_run, position=len(parent.prompt), token=token)
    assert answer["setup"]["parameters"]["fixed_words"] == '7: c; 1: "b"'
    parent.vocabulary[token] = b"\xc3"
    error = ask(runs, loader, canvas_run, position=len(parent.prompt), token=token)["error"]
    assert "not a whole character" in error


@pytest.mark.parametrize(
    "request_, sentence",
    [
        (dict(position=0, text="dog"), "not on the canvas"),
        (dict(position=999, text="dog"), "not on the canvas"),
        (dict(lane=1, position=12, text="dog"), "takes no fixed words"),
        (dict(position=12, text=""), "Type the text"),
        (dict(position=12, text="word " * 300), "does not fit"),
    ],
)
def test_a_word_that_cannot_be_fixed_is_a_sentence(runs, loader, canvas_run, request_, sentence):
    assert sentence in ask(runs, loader, canvas_run, **request_)["error"]
