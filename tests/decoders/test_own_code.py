"""The places of a strategy's own code at which a lane's events were recorded."""

import json

import pytest

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.code import NOWHERE, Code
from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.trace import Trace, from_json

TWO = {
    "target": TableModel(lambda text: [0.5, 0.3, 0.2], 3),
    "draft": TableModel(lambda text: [0.3, 0.5, 0.2], 3),
}


def run(strategy: str, models: dict = TWO, **parameters) -> Trace:
    return Lane(strategy, [0], models, parameters, limits=Limits(6)).run()


def lines(trace: Trace, kind: type, **wanted) -> set[tuple[str, str]]:
    """The innermost functions that recorded such events, and their lines."""
    found = set()
    for step in trace.steps:
        for event, place in zip(step.events, step.places, strict=True):
            if isinstance(event, kind) and all(getattr(event, name) == one for name, one in wanted.items()):
                number, first, last = trace.code.places[place][-1]
                function = trace.code.functions[number]
                source = function.source.splitlines()[first - function.first : last - function.first + 1]
                found.add((function.name, " ".join(map(str.strip, source))))
    return found


def test_an_event_has_the_line_that_recorded_it():
    trace = run("greedy")
    assert lines(trace, Propose) == {("greedy", "node = lane.propose(lane.tip, token, logprob)")}
    assert lines(trace, Commit) == {("greedy", "lane.commit([node], [own])")}
    assert trace.code.algorithm.startswith("Takes the most likely token at every position")


def test_a_verdict_has_the_line_of_the_rule_that_decided():
    trace = run("speculative", temperature=1.0)
    ((name, line),) = lines(trace, Verdict, status="accepted")
    assert name == "ratio_test" and line.startswith("return TokenTest(place.child, accepted")
    place = next(
        at
        for step in trace.steps
        for e, at in zip(step.events, step.places, strict=True)
        if isinstance(e, Verdict)
    )
    stack = [trace.code.functions[number].name for number, *_ in trace.code.places[place]]
    assert stack == ["rounds", "judged", "walk", "RecursiveRejection.test", "ratio_test"]


def test_a_call_over_several_lines_is_one_place_from_its_first_to_its_last(tmp_path, own):
    trace = run(
        own("""
        node = lane.propose(
            lane.tip,
            0,
            None,
        )
        lane.commit([node], [None])
        yield
    """)
    )
    ((_, line),) = lines(trace, Propose)
    assert line == "node = lane.propose( lane.tip, 0, None, )"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Declares a strategy from a file of a user's, with these lines in its loop; its name."""
    registry.strategies()
    monkeypatch.setattr(registry, "_STRATEGIES", dict(registry._STRATEGIES))

    def declare(body: str) -> str:
        path = tmp_path / "mine.py"
        declared = '@strategy(name="mine", title="Mine", family="sampling")'
        head = f"from decoders.registry import strategy\n\n{declared}\ndef mine(lane):\n"
        path.write_text(f'{head}    """Mine."""\n    while lane.more:{body}', "utf-8")
        return registry.include(path)[0]

    return declare


def test_a_strategy_of_a_users_file_has_its_lines_and_no_path(own):
    trace = run(
        own("""
        logits = lane.score([lane.tip])
        logprobs = lane.distribution([lane.tip], logits)[0]
        best = max(range(3), key=lambda token: float(logprobs[token]))
        lane.commit([lane.propose(lane.tip, best, float(logprobs[best]))], [float(logprobs[best])])
        yield
    """)
    )
    (function,) = trace.code.functions
    assert (function.name, function.file) == ("mine", "mine.py")
    assert function.source.startswith("def mine(lane):") and function.source.rstrip().endswith("yield")
    assert lines(trace, Distribution) == {("mine", "logprobs = lane.distribution([lane.tip], logits)[0]")}


def test_every_event_of_a_strategy_of_the_package_has_a_place():
    for name, parameters in (("beam", {}), ("jacobi", {}), ("sample", {}), ("speculative", {})):
        trace = run(name, **parameters)
        assert all(at != NOWHERE for step in trace.steps for at in step.places), name


def test_given_tokens_have_no_place():
    begin = {"tokens": [1, 2], "forced": [1]}
    trace = Lane("greedy", [0], TWO, limits=Limits(4), begin=begin).run()
    assert set(trace.steps[0].places) == {NOWHERE} and NOWHERE not in trace.steps[-1].places


def test_code_is_saved_and_read_and_left_out_where_steps_were_cut():
    trace = run("speculative")
    record = json.loads(json.dumps(trace.to_json()))
    again = from_json(record)
    assert again.code == trace.code and [s.places for s in again.steps] == [s.places for s in trace.steps]
    assert from_json(record | {"steps": record["steps"][:1]}).code is None
    wrong = record["code"] | {"places": [[[99, 1, 1]]] * len(record["code"]["places"])}
    assert from_json(record | {"code": wrong}).code is None
    long = [function | {"source": "x" * 50_000} for function in record["code"]["functions"]]
    assert from_json(record | {"code": record["code"] | {"functions": long}}).code is None
    assert isinstance(trace.code, Code)
