"""vLLM's recorder on a stand-in for its model runner: the tokens stay, the traces tell what its sampler did,
and a fault of ours ends no request. tests/decoders/models/test_vllm.py shows the same for vLLM itself.
"""

import json
import math

import pytest
import torch

from decoders.trace.events import Distribution, Note, Propose, Verdict
from decoders.trace.reasons import Code
from decoders.trace.trace import Trace, check_trace
from decoders.watch.vllm import measured, recorder, spool
from decoders.watch.vllm.requests import Requests, header
from decoders.watch.vllm.runner import RunnerRecorder
from decoders.watch.vllm.spool import Spool, SpoolReader
from decoders.watch.vllm.writer import SUFFIX, Writer, make_room
from tests.helpers import vllm_stand_in as stand_in
from tests.helpers.vllm_stand_in import ENGINE, Runner, Text, params

STEPS = 12


def word(token: int) -> bytes:
    """The text of a token of the stand-in."""
    return f" w{token}".encode()


def texts(count: int = 3, **given) -> dict[str, Text]:
    return {f"request-{at}": Text(params(**given), [at + 1, at + 2]) for at in range(count)}


def watched(monkeypatch, folder, engine=ENGINE, steps=STEPS, **how) -> tuple[Runner, list[Trace]]:
    """A stand-in that has been watched, and its traces."""
    stand_in.install(monkeypatch)
    given = how.pop("params", {})
    runner = Runner(texts(**given), **how)
    own = RunnerRecorder(runner, folder, 20, engine)
    for _ in range(steps):
        runner.step()
    own.close()
    return runner, read(folder)


def read(folder) -> list[Trace]:
    """The traces of a spool; each follows the schema."""
    requests = Requests(lambda _: word)
    requests.read(SpoolReader(folder).records())
    for one in requests.all:
        check_trace(json.loads(json.dumps(one.trace.to_json(), allow_nan=False)))
    return [one.trace for one in requests.all]


@pytest.mark.parametrize(("temperature", "has_q"), [(0.0, False), (0.8, False), (0.8, True)])
def test_tokens_stay_and_stand_in_the_traces(monkeypatch, tmp_path, temperature, has_q):
    stand_in.install(monkeypatch)
    given = {"temperature": temperature, "max_tokens": 1000}
    alone = Runner(texts(**given), temperature, has_q)
    for _ in range(STEPS):
        alone.step()
    runner, traces = watched(monkeypatch, tmp_path, temperature=temperature, has_q=has_q, params=given)
    for text, before, trace in zip(runner.requests.values(), alone.requests.values(), traces, strict=True):
        assert text.output_token_ids == before.output_token_ids == trace.output()
        assert trace.prompt == text.prompt_token_ids


def test_each_test_has_the_numbers_that_decided(monkeypatch, tmp_path):
    """p, q and u are the sampler's: a token passed where u is at most p / q."""
    given = {"temperature": 0.8, "max_tokens": 1000}
    _, traces = watched(monkeypatch, tmp_path, temperature=0.8, has_q=True, params=given)
    verdicts = [v for trace in traces for step in trace.steps for v in step.of(Verdict)]
    tested = [v for v in verdicts if v.status in ("accepted", "rejected")]
    assert {v.status for v in tested} == {"accepted", "rejected"}
    for verdict in tested:
        assert (verdict.u <= verdict.p / verdict.q) == (verdict.status == "accepted")
        assert verdict.why[0].code is Code.TOKEN_REJECTION
    drawn = [v for v in verdicts if v.status == "resampled"]
    assert drawn and all(0.0 < v.p <= 1.0 and v.why[0].code is Code.RESIDUAL for v in drawn)


def test_the_distributions_are_those_of_the_table(monkeypatch, tmp_path):
    runner, traces = watched(monkeypatch, tmp_path, temperature=0.8, params={"temperature": 0.8})
    known = traces[0].nodes()
    for step in traces[0].steps:
        for event in step.of(Distribution):
            scores = runner.target[known[event.node][1]] / (0.8 if event.view == "processed" else 1.0)
            expected = scores.log_softmax(-1)
            top = expected.topk(20)
            assert [token for token, _ in event.top] == top.indices.tolist()
            assert [logprob for _, logprob in event.top] == pytest.approx(top.values.tolist(), abs=1e-5)
            assert event.rest == pytest.approx(1.0 - float(top.values.exp().sum()), abs=1e-5)
            assert event.entropy == pytest.approx(float(-(expected.exp() * expected).sum()), abs=1e-4)


def test_without_q_it_says_so(monkeypatch, tmp_path):
    given = {"temperature": 0.8}
    _, traces = watched(monkeypatch, tmp_path, temperature=0.8, params=given)
    events = [event for step in traces[0].steps for event in step.events]
    assert any(isinstance(event, Note) and "gave no probabilities" in event.text for event in events)
    tested = [e for e in events if isinstance(e, Verdict) and e.status in ("accepted", "rejected")]
    assert all(v.q is None and v.acceptance == v.p and v.why[0].code is Code.CERTAIN_DRAFT for v in tested)
    assert all(e.logprob is None for e in events if isinstance(e, Propose) and e.source == "draft")


def test_a_grammar_masks_what_is_processed_and_not_what_the_target_says(monkeypatch, tmp_path):
    stand_in.install(monkeypatch)
    runner = Runner(texts(1))
    runner.allowed = torch.arange(stand_in.WORDS) % 2 == 0
    own = RunnerRecorder(runner, tmp_path, 20, ENGINE)
    for _ in range(4):
        runner.step()
    own.close()
    (trace,) = read(tmp_path)
    offers = [event for step in trace.steps for event in step.of(Distribution)]
    assert all(token % 2 == 0 for event in offers if event.view == "processed" for token, _ in event.top)
    assert any(token % 2 for event in offers if event.view == "target" for token, _ in event.top)
    assert all(token % 2 == 0 for token in trace.output())


def test_a_text_ends_where_vllm_ends_it(monkeypatch, tmp_path):
    """Tokens beyond a limit, an end-of-text token or a stop string were accepted, and are not committed."""
    runner, traces = watched(monkeypatch, tmp_path / "whole", params={"max_tokens": 1000})
    text = next(iter(runner.requests.values())).output_token_ids
    for given, end, sentence in (
        ({"max_tokens": 7}, 7, "Reached max_new_tokens = 7."),
        ({"eos_token_id": text[4]}, text.index(text[4]) + 1, "The model wrote its end-of-text token."),
        (
            {"stop_token_ids": [text[5]]},
            text.index(text[5]) + 1,
            "A stop token of the request ended the text.",
        ),
        ({"stop": [f"w{text[6]} "[:-1]]}, None, None),
    ):
        _, (trace, *_) = watched(
            monkeypatch, tmp_path / str(len(given) + (end or 0)) / str(end), params=given
        )
        if end is None:
            assert trace.ended.startswith("The stop string") and trace.text().count(given["stop"][0]) == 1
        else:
            assert trace.ended == sentence and trace.output() == text[:end]
        late = [event for event in trace.steps[-1].of(Note) if "After" in event.text]
        assert late, "the stand-in decodes on"


def test_preempted_and_aborted_requests_say_so(monkeypatch, tmp_path):
    stand_in.install(monkeypatch)
    runner = Runner(texts(2, max_tokens=500))
    own = RunnerRecorder(runner, tmp_path, 20, ENGINE)
    runner.step()
    runner.step(preempted={"request-0"})
    runner.requests.pop("request-1")
    runner.input_batch.req_ids.remove("request-1")
    runner.step(over={"request-1"})
    own.close()
    first, second = read(tmp_path)
    assert any("preempted this request" in note.text for step in first.steps for note in step.of(Note))
    assert second.ended == "vLLM ended this request before its text was over."


def test_a_fault_ends_the_recording_and_no_request(monkeypatch, tmp_path):
    stand_in.install(monkeypatch)
    runner, alone = Runner(texts(max_tokens=500)), Runner(texts(max_tokens=500))
    own = RunnerRecorder(runner, tmp_path, 20, ENGINE)
    for at in range(STEPS):
        if at == 5:
            monkeypatch.setattr(recorder.Recorder, "step", lambda *_: 1 / 0)
        runner.step()
        alone.step()
    assert [t.output_token_ids for t in runner.requests.values()] == [
        t.output_token_ids for t in alone.requests.values()
    ]
    assert "_sample" not in vars(runner) and "execute_model" not in vars(runner)
    own.close()
    for trace in read(tmp_path):
        assert len(trace.steps) >= 5 and "ZeroDivisionError" in trace.ended


def test_a_spool_that_nobody_reads_is_bounded(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, "FILE_BYTES", 2000)
    monkeypatch.setattr(spool, "MAX_BYTES", 10_000)
    monkeypatch.setattr(Spool.__init__, "__defaults__", (10_000,))
    stand_in.install(monkeypatch)
    runner = Runner(texts(max_tokens=500))
    RunnerRecorder(runner, tmp_path, 20, ENGINE)
    for _ in range(60):
        runner.step()
    assert "_sample" not in vars(runner)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 30_000
    assert len(next(iter(runner.requests.values())).output_token_ids) >= 60


def test_numbers_that_json_lacks_are_kept_out(monkeypatch, tmp_path):
    """A broken sampler may divide by a temperature of 0."""
    stand_in.install(monkeypatch)
    runner = Runner(texts(1))
    own = RunnerRecorder(runner, tmp_path, 20, ENGINE)
    runner.step()
    runner.target[:] = math.nan
    runner.step()
    own.close()
    assert read(tmp_path)


def test_a_folder_holds_traces_that_grow(monkeypatch, tmp_path):
    stand_in.install(monkeypatch)
    runner, writer = Runner(texts(2, max_tokens=30)), Writer(tmp_path, lambda _: word)
    own = RunnerRecorder(runner, tmp_path / ".spool", 20, ENGINE)
    seen = []
    for _ in range(4):
        runner.step()
        assert writer.turn() == 2
        files = sorted(tmp_path.glob(f"*{SUFFIX}"))
        seen.append(json.loads(files[0].read_text("utf-8")))
        check_trace(seen[-1])
    assert [len(one["steps"]) for one in seen] == [1, 2, 3, 4] and len(files) == 2
    assert writer.turn() == 0
    own.close()
    assert writer.turn() == 2 and writer.turn() == 0 and not writer.requests.open
    make_room(tmp_path, files[1].stat().st_size)
    assert list(tmp_path.glob(f"*{SUFFIX}")) == [files[1]]


def test_read_files_of_the_spool_are_deleted(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, "FILE_BYTES", 100)
    own, reader = Spool(tmp_path), SpoolReader(tmp_path)
    for at in range(5):
        own.write({"kind": "step", "at": at})
    assert [header["at"] for header, _ in reader.records()] == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 1
    own.write({"kind": "step", "at": 5})
    assert [header["at"] for header, _ in reader.records()] == [5]


def test_half_a_record_waits_for_the_rest(tmp_path):
    own, reader = Spool(tmp_path), SpoolReader(tmp_path)
    own.write({"kind": "one"}, {"a": torch.arange(5).numpy()})
    own.close()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert list(reader.records()) == []
    path.write_bytes(whole)
    ((header, arrays),) = reader.records()
    assert header == {"kind": "one"} and arrays["a"].tolist() == [0, 1, 2, 3, 4]


def test_rows_are_measured_in_parts_that_take_little_memory(monkeypatch):
    scores, tokens = torch.randn(7, 50), torch.randint(0, 50, (7, 2))
    whole = measured.of_rows("raw", scores, tokens)
    monkeypatch.setattr(measured, "PART", 100)
    parts = measured.of_rows("raw", scores, tokens)
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value)


@pytest.mark.parametrize(
    ("method", "strategy", "shape"),
    [
        ("draft_model", "speculative", {"num_assistant_tokens": 3}),
        ("suffix", "prompt_lookup", {"prompt_lookup_num_tokens": 3}),
        ("eagle3", "eagle3", {"tree": "chain", "depth": 3}),
        ("a method of next year", "speculative", {"num_assistant_tokens": 3}),
        (None, "greedy", {}),
    ],
)
def test_a_trace_names_our_strategy_of_the_kind(method, strategy, shape):
    begun = {"params": recorder.wanted(params()), "prompt": [1], "written": [], "request": "request-1"}
    trace = header(ENGINE | {"method": method}, begun)
    assert trace.strategy == strategy and shape.items() <= trace.parameters.items()
    assert trace.title.endswith("(vLLM)") and trace.model_defaults.get("method") == method
