"""Files that the app must not open, and files with false contents, made from a seed."""

import base64
import gzip
import json
import random

from decoders.trace.events import Cell, Depend, Note, Step, Verdict
from decoders.trace.scores import Rank
from explorer.export import run_file
from tests.helpers.random_requests import BYTES, mutations
from tests.helpers.scripted_lane import ScriptedLane

FILES = 400  # of those that lie
BLOB = b'<!doctype html><script type="text/plain" id="explorer-run">%s</script>'
RESPONSE = {
    "choices": [
        {
            "logprobs": {
                "content": [
                    {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1}]},
                ]
            }
        }
    ],
    "metrics": {"speculative_decoding": {"per_step_drafted": [1], "per_step_accepted": [0]}},
}


def damaged(chance: random.Random) -> list[tuple[str, bytes]]:
    """Invalid files of every kind that the app opens."""
    trace = small_trace()
    packed = run_file.pack(trace)
    files = [(f"bytes {body[:20]!r}", body) for body in BYTES]
    files += [(f"cut at {n}", packed[:n]) for n in range(2, len(packed), len(packed) // 12)]
    for n in range(30):
        broken = bytearray(packed)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        files.append((f"flipped {n}", bytes(broken)))
    files += [("bomb", gzip.compress(b" " * (70 * 2**20))), ("deep", gzip.compress(b"[" * 10**6))]
    for inner in (b"", b"A", b"AAAA", b"====", as_data(packed[:50]).encode(), as_data(b"[]").encode()):
        files.append((f"page {inner[:8]!r}", BLOB % inner))
    setup = {"prompt": "a", "max_new_tokens": 4, "lanes": [{"strategy": "beam", "view": "text"}]}
    wholes = {
        "run": {"version": 1, "kind": run_file.KIND, "setup": setup, "traces": [trace]},
        "trace": trace,
        "response": RESPONSE,
    }
    lying = [(f"{name}: {what}", value) for name in wholes for what, _, value in mutations(wholes[name])]
    return files + [(what, json.dumps(value).encode()) for what, value in chance.sample(lying, FILES)]


def small_trace() -> dict:
    """A minimal trace with one event of each kind."""
    lane = ScriptedLane([b" a", b" b"])
    while lane.advance():
        pass
    lane.trace.strategy = "beam"
    events = [
        Verdict(1, "accepted", 0.5, 0.4, 0.1),
        Rank(1, "sum", -0.5, {"part": 1.0}, rank=1),
        Depend(1, 2, 0.5, "attention"),
        Cell(1, 0, 1, "guess", 0.5),
        Note("So it was."),
    ]
    lane.trace.append(Step(2, events, 0.3))
    return lane.trace.to_json()


def as_data(data: bytes) -> str:
    """In the form that the page sends."""
    return base64.b64encode(data).decode()
