"""Traces: JSON there and back, the published schema, refusals in one sentence, costs and metrics."""

import json
from dataclasses import fields

import pytest

from decoders.lane import Lane, Limits
from decoders.trace import events, json_file, schema, trace
from decoders.trace.events import Commit, Forward, Propose, Step, Verdict
from decoders.trace.reasons import Code, Reason
from decoders.trace.trace import Trace


@pytest.fixture(scope="module")
def record(tiny_model):
    """The JSON form of a short jacobi lane: it has nearly every event type."""
    lane = Lane("jacobi", [5, 6, 7, 8], {"target": tiny_model("llama")}, limits=Limits(40))
    return json.loads(json.dumps(lane.run().to_json()))


def test_published_schema_is_up_to_date():
    assert json.loads(schema.PATH.read_text("utf-8")) == schema.schema()


def test_every_event_type_survives_json():
    samples = {int: 3, float: 0.5, str: "accepted", list: [1], dict: {"a": 1.0}}
    for kind in events.EVENTS.values():
        values = []
        for f in fields(kind):
            name = str(f.type)
            simple = next((v for t, v in samples.items() if t.__name__ in name), None)
            special = {"top": [[1, 0.5]], "why": (Reason(Code.RANK, {"rank": 1, "count": 2}),)}
            values.append(special.get(f.name, simple))
        event = kind(*values)
        assert events.event_from_json(json.loads(json.dumps(events.event_to_json(event)))) == event


def test_round_trip_through_files(record, tmp_path):
    first = trace.from_json(record)
    for name in ("a.json", "a.json.gz"):
        first.save(tmp_path / name)
        assert trace.load(tmp_path / name).to_json() == record


def test_a_verdict_of_an_older_file_is_read_and_written_with_its_new_name(record):
    verdict = {"type": "Verdict", "node": 0, "status": "accepted", "u": 0.5}
    first = record["steps"][0]

    def with_first(event: dict) -> dict:
        steps = [first | {"events": [*first["events"], event]}, *record["steps"][1:]]
        return record | {"steps": steps}

    opened = trace.from_json(with_first(verdict | {"chance": 0.75}))
    assert opened.steps[0].of(Verdict)[-1].acceptance == opened.steps[0].of(Verdict)[-1].passes == 0.75
    assert opened.to_json()["steps"][0]["events"][-1] == verdict | {"acceptance": 0.75}
    with pytest.raises(ValueError, match="not a trace of version 2"):
        trace.from_json(with_first(verdict | {"chance": "likely"}))


def test_checkpoints_every_32_steps(record):
    assert [c["step"] for c in record["checkpoints"]] == list(range(31, len(record["steps"]), 32))
    for checkpoint in record["checkpoints"]:
        part = trace.from_json(record | {"steps": record["steps"][: checkpoint["step"] + 1]})
        assert checkpoint["totals"] == part.costs.totals()
        assert [n for s in part.steps for c in s.of(Commit) for n in c.nodes] == checkpoint["committed"]


def judged(*why):
    """A verdict on the last token of the prompt, for these reasons."""
    return {"type": "Verdict", "node": 3, "status": "accepted", "why": [*why]}


def broken(record, change):
    copy = json.loads(json.dumps(record))
    change(copy)
    return copy


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.pop("steps"),
        lambda r: r.update(version=99),
        lambda r: r["steps"][0]["events"].append(
            {"type": "Propose", "node": 999, "parent": 998, "token": 1, "source": "x"}
        ),
        lambda r: r["steps"][0]["events"].append({"type": "Verdict", "node": 5, "status": "liked"}),
        lambda r: r["steps"][0]["events"].append({"type": "Verdict", "node": 12345, "status": "accepted"}),
        lambda r: r["steps"][0]["events"].append({"type": "Commit", "nodes": [4, 5], "logprobs": [0.0]}),
        lambda r: r["steps"][0]["events"].append({"type": "Commit", "nodes": [3], "logprobs": [1.0]}),
        lambda r: r["steps"][0]["events"].append(
            {"type": "Propose", "node": 999, "parent": 3, "token": 1, "source": "x", "logprob": 800.0}
        ),
        lambda r: r["steps"][0]["events"].append(
            {"type": "Distribution", "node": 3, "view": "target", "top": [[1, 2.0]], "rest": 0, "entropy": 0}
        ),
        lambda r: r["steps"][0]["events"].append(judged({"code": "by luck"})),
        lambda r: r["steps"][0]["events"].append(judged({"code": "rank", "rank": 1})),
        lambda r: r["steps"][0]["events"].append(judged({"code": "rank", "rank": 1, "count": "many"})),
        lambda r: r["steps"][0]["events"].append(judged({"code": "rank", "rank": 1, "count": 2, "p": 1})),
        lambda r: r["steps"][0]["events"].append({"type": "Explode"}),
        lambda r: r["vocabulary"].update({"<script>": "00"}),
        lambda r: r["vocabulary"].update({"7": "zz"}),
        lambda r: r.update(prompt=[]),
    ],
)
def test_files_that_contradict_the_schema_are_refused_in_one_sentence(record, change):
    with pytest.raises(ValueError, match="trace") as error:
        trace.from_json(broken(record, change))
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize("data", [b"hello", b"\xff\xfe", b"[1, 2]", b"[1e300]", b"{}", b"\x1f\x8b broken"])
def test_other_files_are_refused_in_one_sentence(tmp_path, data):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not a trace"):
        trace.load(path)


def test_too_large_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_file, "MAX_TRACE_BYTES", 10)
    path = tmp_path / "x.json"
    path.write_text("[" + " " * 20 + "]", "utf-8")
    with pytest.raises(ValueError, match="larger than"):
        trace.load(path)


def hand_made() -> Trace:
    """Two rounds: 2 of 3 drafted tokens accepted, then 0 of 1."""
    made = Trace("x", "X", {}, 0, {"target": "t"}, [7])
    made.append(
        Step(
            0,
            [
                Forward("draft", "draft", 3, 1, 0.0, 0.1),
                Propose(1, 0, 3, -0.1, "draft"),
                Propose(2, 1, 3, -0.1, "draft"),
                Propose(3, 2, 3, -0.1, "draft"),
                Forward("target", "verify", 4, 4, 0.1, 0.2),
                Verdict(1, "accepted"),
                Verdict(2, "accepted"),
                Verdict(3, "rejected"),
                Propose(4, 2, 5, -0.5, "target"),
                Verdict(4, "resampled"),
                Commit([1, 2, 4], [-0.5, -0.25, -1.0]),
            ],
            0.5,
        )
    )
    made.append(
        Step(
            1,
            [
                Propose(5, 4, 3, -0.1, "draft"),
                Forward("target", "verify", 2, 2, 0.6, 0.2),
                Forward("target", "lens", 9, 9, 0.9, 0.1),
                Verdict(5, "rejected"),
                Propose(6, 4, 2, -0.5, "target"),
                Verdict(6, "resampled"),
                Commit([6], [-0.25]),
            ],
            1.0,
        )
    )
    return made


def test_costs_and_metrics_by_hand():
    costs = hand_made().costs
    totals = costs.totals()
    expected = dict(
        steps=2,
        target_forwards=2,
        draft_forwards=1,
        lens_forwards=1,
        target_tokens=6,
        draft_tokens=3,
        draft_token_candidates=4,
        proposed=4,
        accepted=2,
        new_tokens=4,
        logprob=-2.0,
        seconds=1.0,
        tokens_per_second=4.0,
        shared_tokens=0,
    )
    assert totals == expected
    assert costs.metrics() == {
        "mean_acceptance_length": 2.0,
        "draft_acceptance_rate": 0.5,
        "acceptance_histogram": [1, 0, 1],
        "per_step_drafted": [3, 1],
        "per_step_accepted": [2, 0],
        "draft_token_candidates": 4,
        "cut_rounds": 0,
        "mean_acceptance_length_uncut": 2.0,
    }


def test_output_follows_the_commits():
    assert hand_made().output() == [3, 3, 5, 2]


def test_malformed_streams_are_found():
    trunk = 1
    assert trace.malformed([Propose(1, 0, 3, None, "draft")], trunk) is None
    assert "twice" in trace.malformed([Propose(1, 0, 3, None, "d"), Propose(1, 0, 4, None, "d")], trunk)
    assert "does not exist" in trace.malformed([Propose(2, 1, 3, None, "d")], trunk)
    assert "does not exist" in trace.malformed([Commit([3], [0.0])], trunk)
