"""`watch(llm)` and the recorded server on vLLM itself, with every kind of proposer that its CPU build runs:
tokens are those of an unwatched run, and the traces' counts are vLLM's own metrics, by name.

Needs the second environment that `make vllm` sets up; left out without it.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from decoders.heads import Target, take_taps
from decoders.models import head_files
from decoders.models.catalog import DRAFT, SHIPPED, TARGET
from decoders.models.loading import load
from decoders.models.published import read_heads
from decoders.models.published.writing import write_heads
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.imports.vllm_counts import from_prometheus
from decoders.trace.reasons import Code
from decoders.trace.trace import Trace
from decoders.trace.trace import load as load_trace
from decoders.watch.vllm.plugin import FOLDER, SPOOL
from decoders.watch.vllm.writer import SUFFIX
from explorer.benchmarks.free_port import free_port
from visualizers.analysis.lane_stats import LaneFacts
from visualizers.analysis.speculation_report import metrics

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".vllm" / "bin" / "python"
JOB = ROOT / "tests" / "helpers" / "vllm_job.py"
WAIT_SECONDS = 600
QUIET = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
QUIET |= {"VLLM_LOGGING_LEVEL": "ERROR", "PYTHONPATH": str(ROOT)}
PROMPTS = [
    "Once upon a time, there was a little girl named Lily.",
    "The dog ran",
    "Tom and Sam went to the park.",
    "One day a big bear",
] * 2
REPEATED = ["The cat sat on the mat. The cat sat on the mat. The cat sat on"] * 2
REPEATED += ["Tom said: one two three four five. Tom said: one two three"] * 2
LLM = {
    "model": str(SHIPPED / TARGET),
    "dtype": "float32",
    "max_model_len": 512,
    "enforce_eager": True,
    "disable_log_stats": False,
    "enable_prefix_caching": False,
}
BY_MODEL = {"method": "draft_model", "model": str(SHIPPED / DRAFT), "num_speculative_tokens": 4}
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON.exists(), reason="`make vllm` sets up the engine that these tests need"),
]


def greedy(prompts: list[str], tokens: int = 60, **more: Any) -> dict[str, Any]:
    return {"prompts": prompts, "params": {"max_tokens": tokens, "temperature": 0.0} | more}


def run(folder: Path, cases: list[dict[str, Any]], speculative: dict | None = None, **llm: Any) -> list[dict]:
    """What `vllm_job.py` found for each case, with its traces under `traces`."""
    options = LLM | ({"speculative_config": speculative} if speculative else {}) | llm
    mended = options.pop("mended", False)
    job = {"llm": options, "cases": cases, "folder": str(folder), "mended": mended}
    own = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"} if mended else {}
    done = subprocess.run(
        [str(PYTHON), str(JOB), json.dumps(job)],
        env=os.environ | QUIET | own,
        cwd=folder,
        capture_output=True,
        timeout=WAIT_SECONDS,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr[-3000:]
    found = json.loads(lines[0].removeprefix("RESULT "))
    for number, case in enumerate(found):
        names = [folder / f"{number}-{at}.json" for at in range(case["traces"])]
        case["traces"] = [load_trace(name) for name in names]
    return found


def check(case: dict[str, Any]) -> None:
    """The tokens are those of the run before, unwatched, and of the traces; the counts are vLLM's. Of rounds
    after a stop string vLLM counts those that ended before its scheduler heard of it, mostly none.
    """
    assert not case["problems"]
    assert case["watched"] == case["plain"]
    assert [trace.output() for trace in case["traces"]] == case["watched"]
    assert all(trace.ended for trace in case["traces"])
    facts = [LaneFacts(trace) for trace in case["traces"]]
    values = {one["name"]: one["value"] for one in metrics(facts)}
    theirs, late = dict(case["counts"]), late_rounds(case["traces"])
    places = theirs.pop("num_accepted_tokens_per_pos")
    for name, more in zip(("num_drafts", "num_draft_tokens", "num_accepted_tokens"), late, strict=True):
        assert values[name] <= theirs[name] <= values[name] + more
    if not any(late):
        ours = values["num_accepted_tokens_per_pos"]
        assert ours == places[: len(ours)] and not any(places[len(ours) :])


def late_rounds(traces: list[Trace]) -> list[int]:
    """Rounds, drafted and accepted tokens after a stop string, which the front end hears of later."""
    total = [0, 0, 0]
    for trace in traces:
        for note in trace.steps[-1].of(Note):
            if note.text.startswith("After the end"):
                numbers = [int(word) for word in note.text.split() if word.isdecimal()]
                total = [a + b for a, b in zip(total, numbers, strict=True)]
    return total


def notes(trace: Trace) -> str:
    return " ".join(note.text for step in trace.steps for note in step.of(Note))


def test_a_draft_model_with_stop_strings_and_a_grammar(tmp_path):
    cases = [greedy(PROMPTS), greedy(PROMPTS, stop=["She", "play"])]
    cases += [greedy(PROMPTS[:2], 30) | {"structured": {"regex": "(yes|no|[a-z ]{5,40})\\."}}]
    plain, stopped, structured = run(tmp_path, cases, BY_MODEL)
    for case in (plain, stopped, structured):
        check(case)
    assert plain["counts"]["num_accepted_tokens"] > 100
    assert any("stop string 'She'" in trace.ended for trace in stopped["traces"])
    assert "gave no probabilities" in notes(plain["traces"][0])
    views = {
        event.view
        for t in structured["traces"]
        for s in t.steps
        for event in s.events
        if hasattr(event, "view")
    }
    assert views == {"target", "processed"}


def test_a_sampled_draft_has_p_q_and_u(tmp_path):
    """With the mended kernel of `vllm_job.py`: as it comes, vLLM's CPU build reads temperatures from memory
    that nobody has written.
    """
    cases = [{"prompts": PROMPTS, "params": {"max_tokens": 60, "temperature": 0.8}}]
    cases += [{"prompts": PROMPTS, "params": {**cases[0]["params"], "top_p": 0.9, "repetition_penalty": 1.1}}]
    drawn = BY_MODEL | {"draft_sample_method": "probabilistic"}
    for case in run(tmp_path, cases, drawn, mended=True, distributed_executor_backend="uni"):
        check(case)
        verdicts = [v for trace in case["traces"] for step in trace.steps for v in step.of(Verdict)]
        tested = [v for v in verdicts if v.status in ("accepted", "rejected")]
        assert {v.status for v in tested} == {"accepted", "rejected"}
        for verdict in tested:
            assert (verdict.u <= verdict.p / verdict.q) == (verdict.status == "accepted")


def test_n_grams_have_no_q(tmp_path):
    method = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    cases = [greedy(REPEATED), {"prompts": REPEATED, "params": {"max_tokens": 40, "temperature": 0.7}}]
    exact, drawn = run(tmp_path, cases, method, mended=True, distributed_executor_backend="uni")
    for case in (exact, drawn):
        check(case)
        assert "copied from the text" in notes(case["traces"][0])
    verdicts = [v for trace in drawn["traces"] for step in trace.steps for v in step.of(Verdict)]
    tested = [v for v in verdicts if v.status in ("accepted", "rejected")]
    assert tested and all(v.q is None and (v.u <= v.p) == (v.status == "accepted") for v in tested)
    assert all(v.why[0].code is Code.CERTAIN_DRAFT for v in tested)


@pytest.mark.parametrize(
    ("kind", "heads"), [("eagle", "llama-tiny-heads"), ("eagle3", "llama-tiny-feature-drafters")]
)
def test_our_heads_serve_there(kind, heads, tmp_path):
    """Our heads, written for vLLM, draft there what they draft here: the first token of each round is the
    head's most likely one.
    """
    model = load(TARGET, "cpu")
    target, folder = Target.of(model.model), head_files.find(heads)
    module = head_files.build(heads, head_files.read_config(heads, folder), folder, target)[kind]
    write_heads(tmp_path / kind, module, str(SHIPPED / TARGET))
    method = {"method": kind, "model": str(tmp_path / kind), "num_speculative_tokens": 4}
    (case,) = run(tmp_path, [greedy(PROMPTS)], method)
    check(case)
    back = read_heads(kind, tmp_path / kind, target)[kind]
    same = []
    for trace in case["traces"][:4]:
        ids = torch.tensor([trace.prompt + trace.output()])
        guesses = back.along(take_taps(model.model, ids, back.reads), 1)[0][0].argmax(-1).tolist()
        depth = {node: at for at, node in enumerate(range(len(trace.prompt)))}
        for step in trace.steps:
            born = step.of(Propose)
            for event in born:
                depth[event.node] = depth[event.parent] + 1
            if born and born[0].source == "draft" and depth[born[0].node] - 2 < len(guesses):
                same.append(born[0].token == guesses[depth[born[0].node] - 2])
    assert len(same) > 50 and sum(same) >= 0.98 * len(same)


def test_suffix_decoding(tmp_path):
    has = subprocess.run([str(PYTHON), "-c", "import arctic_inference.suffix_decoding"], capture_output=True)
    if has.returncode:
        pytest.skip("arctic-inference is not installed in .vllm")
    (case,) = run(tmp_path, [greedy(REPEATED)], {"method": "suffix", "num_speculative_tokens": 8})
    check(case)
    assert case["traces"][0].title == "Suffix decoding (vLLM)"


def test_chunked_prefill_and_preemption(tmp_path):
    """Memory for 12 blocks of tokens: of eight requests some are put off and read again."""
    prompts = [prompt * 6 for prompt in PROMPTS]
    scarce = {"max_num_batched_tokens": 64, "num_gpu_blocks_override": 12, "max_num_seqs": 8}
    (case,) = run(tmp_path, [greedy(prompts, 100)], BY_MODEL, enable_chunked_prefill=True, **scarce)
    check(case)
    assert any("preempted this request" in notes(trace) for trace in case["traces"])
    prefills = [f for f in case["traces"][0].steps[0].of(Forward) if f.kind == "prefill"]
    assert len(prefills) > 1 and sum(f.tokens for f in prefills) == len(case["traces"][0].prompt)


def test_without_speculation_a_text_is_whole(tmp_path):
    cases = [
        greedy(PROMPTS, 40),
        {"prompts": PROMPTS, "params": {"max_tokens": 40, "temperature": 0.8, "seed": 1}},
    ]
    for case in run(tmp_path, cases):
        assert case["watched"] == case["plain"] == [trace.output() for trace in case["traces"]]
        assert not case["problems"]


def test_a_server_writes_traces_that_grow(tmp_path):
    """And leaves no spool when it ends."""
    port = free_port()
    command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", LLM["model"]]
    command += [
        "--served-model-name",
        TARGET,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--dtype",
        "float32",
    ]
    command += ["--max-model-len", "512", "--enforce-eager", "--speculative-config", json.dumps(BY_MODEL)]
    server = subprocess.Popen(
        command,
        env=os.environ | QUIET | {FOLDER: str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    base, until = f"http://127.0.0.1:{port}", time.monotonic() + WAIT_SECONDS
    try:
        while not answers(base):
            assert server.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(1)
        asked = {"model": TARGET, "prompt": PROMPTS[0], "max_tokens": 120, "temperature": 0.0}
        said = httpx.post(f"{base}/v1/completions", json=asked, timeout=60).json()["choices"][0]["text"]
        trace = eventually(lambda: finished(tmp_path))
        assert trace.text() == said
        theirs = from_prometheus(httpx.get(f"{base}/metrics").content)
        values = {one["name"]: one["value"] for one in metrics([LaneFacts(trace)])}
        names = ("num_drafts", "num_draft_tokens", "num_accepted_tokens", "num_accepted_tokens_per_pos")
        assert {name: values[name] for name in names} == {name: theirs[name] for name in names}
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
    eventually(lambda: not list((tmp_path / SPOOL).iterdir()))


def answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health").status_code == 200
    except httpx.HTTPError:
        return False


def finished(folder: Path) -> Trace | None:
    """The trace in a folder, once its text is over."""
    for path in folder.glob(f"*{SUFFIX}"):
        trace = load_trace(path)
        if trace.ended:
            return trace
    return None


def eventually(found: Any) -> Any:
    until = time.monotonic() + 30
    while not (result := found()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.5)
    return result
