"""The plugin that vLLM loads in each of its processes (entry point `vllm.general_plugins`).

Idle unless asked. It gives vLLM's workers one method more, by which `watch(llm)` switches recording on and
off. Where the environment names a folder in DECODING_EXPLORER_RECORD, a worker records from its start.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

METHOD = "decoding_explorer_record"
FOLDER, TOP_TOKENS = "DECODING_EXPLORER_RECORD", "DECODING_EXPLORER_RECORD_TOP"
SPOOL = ".spool"  # in the folder of the traces
WRITERS: list[subprocess.Popen] = []  # kept, so that their inputs stay open


def register() -> None:
    """What the entry point names. vLLM starts even if this fails."""
    try:
        _register()
    except Exception as error:
        _warn(error)


def _warn(error: Exception) -> None:
    from decoders.watch.vllm.recorder import LOG

    LOG.warning("Decoding Explorer does not record: %s: %s", type(error).__name__, error)


def _register() -> None:
    from vllm.v1.worker.worker_base import WorkerBase, WorkerWrapperBase

    if hasattr(WorkerBase, METHOD):
        return
    setattr(WorkerBase, METHOD, record)
    if folder := os.environ.get(FOLDER):
        _from_the_start(WorkerWrapperBase, Path(folder))


def _from_the_start(wrapper: type, folder: Path) -> None:
    """Each worker of this process records as soon as its model and its memory are there."""
    original = wrapper.initialize_from_config

    def initialize_from_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        try:
            if record(self.worker, str(folder / SPOOL), int(os.environ.get(TOP_TOKENS, "20"))):
                write_traces(folder)
        except Exception as error:  # the server must start all the same
            _warn(error)
        return result

    wrapper.initialize_from_config = initialize_from_config


def write_traces(folder: Path) -> None:
    """Starts a process that makes traces of the spool while this process lives: until its input ends. It is
    not a child of this process, since vLLM kills all its children when it ends.
    """
    from decoders import packages

    command = [sys.executable, "-m", packages.full("decoders.watch.vllm.writer"), str(folder)]
    path = os.pathsep.join(filter(None, [str(packages.ROOT), os.environ.get("PYTHONPATH")]))
    own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", FOLDER: ""}
    started = subprocess.Popen(
        ["/bin/sh", "-c", '"$@" <&0 &', "sh", *command],
        env=os.environ | own,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    started.wait()
    WRITERS.append(started)


def record(worker: Any, folder: str | None, top: int = 20) -> bool:
    """Starts recording what a worker samples into the spool `folder`; without a folder, stops recording.
    Returns whether this worker is the one that records: of those that hold parts of a model, only the first
    does.
    """
    runner = worker.model_runner
    own = getattr(runner, "decoding_explorer", None)
    if own is not None:
        own.close()
        runner.decoding_explorer = None
    if folder is None or not samples(worker):
        return own is not None
    runner.decoding_explorer = recorder_of(worker, Path(folder), top)
    return True


def samples(worker: Any) -> bool:
    """Whether a worker samples, and is the first of those that do the same."""
    parallel = worker.parallel_config
    last = worker.rank // parallel.tensor_parallel_size == parallel.pipeline_parallel_size - 1
    return last and worker.rank % parallel.tensor_parallel_size == 0


def recorder_of(worker: Any, folder: Path, top: int) -> Any:
    """The recorder for a worker's model runner."""
    engine = described(worker.vllm_config)
    if getattr(worker, "use_v2_model_runner", False):
        from decoders.watch.vllm.newer_runner import NewerRunnerRecorder

        return NewerRunnerRecorder(worker.model_runner, folder, top, engine)
    from decoders.watch.vllm.runner import RunnerRecorder

    return RunnerRecorder(worker.model_runner, folder, top, engine)


def described(config: Any) -> dict[str, Any]:
    """What traces say of an engine, from its VllmConfig."""
    import vllm

    speculative = config.speculative_config
    drafter = None if speculative is None else speculative.draft_model_config
    return {
        "version": vllm.__version__,
        "model": config.model_config.model,
        "tokenizer": config.model_config.tokenizer,
        "longest": config.model_config.max_model_len,
        "method": None if speculative is None else speculative.method,
        "drafter": None if drafter is None else drafter.model,
        "num_speculative_tokens": 0 if speculative is None else speculative.num_speculative_tokens,
    }
