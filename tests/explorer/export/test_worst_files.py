"""The worst files of every format that are still accepted: what opening them takes in a fresh process, and
how much is made of them. Larger ones are refused with a sentence.
"""

import gzip
import json
import os
import resource
import subprocess
import sys

import pytest

from decoders.refusal import Refusal
from decoders.trace import json_file, trace
from decoders.trace.imports import answer as answers
from decoders.trace.imports import vllm_counts
from explorer.export import run_file
from explorer.runs.run_state import PIECE_OPS, answer
from explorer.runs.scheduler import Runs
from tests.decoders.trace.imports.test_openai import named, of, response
from tests.helpers.bad_files import small_trace

MEGABYTES = 200  # that opening a file may take besides what it finds
MARKS = 2 * PIECE_OPS + 2 * trace.MAX_STEP_EVENTS  # in the first answer: two views, each up to a step more


def record(**fields) -> dict:
    """A trace with nothing in it but `fields`."""
    empty = {"strategy": "beam", "parameters": {}, "prompt": [0], "vocabulary": {}, "checkpoints": []}
    return small_trace() | empty | {"steps": []} | fields


def steps(count: int, events: int) -> list[dict]:
    """`count` steps of `events` candidates each, all after the prompt."""
    proposed = {"type": "Propose", "parent": 0, "token": 0, "logprob": -1.0, "source": "target"}
    return [
        {
            "index": at,
            "seconds": 0,
            "events": [proposed | {"node": 1 + at * events + one} for one in range(events)],
        }
        for at in range(count)
    ]


def run_of(*records: dict) -> dict:
    lanes = [{"strategy": "beam", "parameters": {}, "seed": 0} for _ in records]
    setup = {"prompt": "a", "max_new_tokens": 4, "lanes": lanes}
    return {"version": 1, "kind": run_file.KIND, "setup": setup, "traces": list(records)}


def drafting(tokens: int, drafted: int) -> dict:
    rounds = drafted // tokens
    return response(tokens, [rounds] * tokens, [0] * tokens)


def listing(tokens: int, listed: int) -> dict:
    return of(*(named("a", -30.0, *((str(i), -30.0) for i in range(listed))) for _ in range(tokens)))


ACCEPTED = {
    "rounds of an answer": lambda: drafting(answers.MAX_TOKENS, answers.MAX_DRAFTED),
    "one round of an answer": lambda: response(1, [answers.MAX_TOKENS], [0]),
    "likely tokens of an answer": lambda: listing(4000, 25),
    "likely tokens at one place": lambda: listing(1, answers.MAX_LISTED),
    "candidates of a trace": lambda: record(steps=steps(1500, 100)),
    "candidates in one step": lambda: record(steps=steps(1, trace.MAX_STEP_EVENTS)),
    "steps of a trace": lambda: record(steps=steps(trace.MAX_STEPS, 1)),
    "prompt of a trace": lambda: record(prompt=[0] * trace.MAX_PROMPT),
    "vocabulary of a trace": lambda: record(vocabulary={str(i): "00" for i in range(99_000)}),
    "what a trace carries besides": lambda: record(totals={"a": [{"a": 0}] * 750_000}),
    "numbers in a parameter": lambda: record(parameters={"num_beams": 10**12, "block_length": 10**12}),
    "candidates of a run": lambda: run_of(*(record(steps=steps(400, 100)) for _ in range(4))),
}
REFUSED = {
    "drafted 16,777,216 tokens": lambda: response(4096, [4096] * 4096, [0] * 4096),
    "lists 100,001 likely tokens": lambda: listing(1, answers.MAX_LISTED + 1),
    "150,001 events,": lambda: record(steps=[*steps(1500, 100), *steps(1, 1)]),
    "20,001 events in one step": lambda: record(steps=steps(1, trace.MAX_STEP_EVENTS + 1)),
    "20,001 steps": lambda: record(steps=steps(trace.MAX_STEPS + 1, 0)),
    "100,001 tokens in its prompt": lambda: record(prompt=[0] * (trace.MAX_PROMPT + 1)),
    "different fields": lambda: record(totals={str(i): 0 for i in range(json_file.MAX_NAMES + 1)}),
    "values and names": lambda: record(totals={"a": [0] * json_file.MAX_PARTS}),
}


def packed(value: dict) -> bytes:
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


@pytest.mark.parametrize("says", REFUSED)
def test_larger_files_are_refused(says):
    with pytest.raises(Refusal, match=says):
        run_file.unpack(packed(REFUSED[says]()))


def test_a_large_file_that_is_not_ascii_is_refused():
    with pytest.raises(Refusal, match="not ASCII"):
        run_file.unpack('"é'.encode() + b" " * json_file.MAX_WIDE_BYTES + b'"')


def test_counts_are_of_a_bounded_size():
    many = {"num_drafts": 1, "num_draft_tokens": 1, "num_accepted_tokens": 0}
    with pytest.raises(Refusal, match="cannot be read"):
        vllm_counts.from_json(many | {"num_accepted_tokens_per_pos": [0] * (vllm_counts.MAX_PLACES + 1)})


def test_what_is_accepted_takes_bounded_memory_and_makes_a_bounded_picture():
    """Each file is opened by a process of its own, which is measured by its resource usage."""
    found = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=True)
    measured = [json.loads(line) for line in found.stdout.splitlines()]
    assert [one["file"] for one in measured] == list(ACCEPTED)
    for one in measured:
        assert one["megabytes"] <= MEGABYTES and one["marks"] <= MARKS, one


def measure(name: str, data: bytes) -> None:
    """Opens a file in a child of this process, which prints what it took."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, name
        return
    before, clock = peak(), os.times()
    _, traces = run_file.unpack(data)
    run = Runs(None).show(traces)
    first = answer(run, [{"view": "draft_rounds", "ops": 0, "rows": 0}] * len(traces), PIECE_OPS)
    marks = [
        len(step) for lane in first["lanes"] for step in (*lane["ops"], *(r["chips"] for r in lane["rows"]))
    ]
    took = {"megabytes": peak() - before, "marks": sum(marks) // len(traces)}
    took["seconds"] = os.times().user - clock.user  # for people who run this file: no test looks at it
    print(json.dumps({"file": name} | took), flush=True)
    os._exit(0)


def peak() -> float:
    """The largest memory of this process so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    for file, make in ACCEPTED.items():
        measure(file, packed(make()))
