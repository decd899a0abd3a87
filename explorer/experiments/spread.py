"""Runs the decodings of an experiment, or the parts of a benchmark, in the worker processes of a Ray cluster,
on one machine or on several.

Experiments that can be spread hand their decodings to `over`. Ray is an extra, imported only when a cluster
is asked for.
"""

import importlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from decoders.refusal import Refusal, said_by
from explorer.cluster import LOCAL
from explorer.experiments import progress

if TYPE_CHECKING:
    from decoders.models.loading import LoadedModel

RETRIES = 3  # maximum retries of a task whose worker was lost
PATIENCE = 5.0  # seconds within which an address must answer


@dataclass(frozen=True)
class Setup:
    """What a worker process needs to load the models as the main process did."""

    model: str
    draft: str
    run_code: bool
    threads: int
    device: str


@dataclass(frozen=True)
class Cluster:
    """A joined cluster, and the names of the models that its workers load."""

    ray: ModuleType
    model: str
    draft: str
    run_code: bool

    def results(self, function: Callable, rows: list[tuple], given: dict) -> list:
        """Returns `function` of each row, one task per row, in the order of the rows. Errors are those of
        `answer`.
        """
        setup = self.setup()
        options = {"num_cpus": setup.threads, "num_gpus": int(setup.device == "cuda")}
        self.check_size(options)
        task = self.ray.remote(max_retries=RETRIES, **options)(in_worker)
        shared = self.ray.put((setup, function, given))  # sent to each machine once
        waiting = [task.remote(shared, row) for row in rows]
        return [self.answer(one) for one in progress.each(waiting)]

    def measured(self, parts: dict[str, Callable], options: Any) -> Iterator[tuple[str, list[dict]]]:
        """The rows of each part of a benchmark. A worker takes more than half of the cores of the largest
        machine, so a machine measures one part at a time; it needs a GPU where this process has one.
        """
        setup, cores = self.setup(), max(node["Resources"].get("CPU", 0) for node in self.ray.nodes())
        limits = {"num_cpus": int(cores) // 2 + 1, "num_gpus": int(setup.device == "cuda")}
        task = self.ray.remote(max_retries=RETRIES, **limits)(part_in_worker)
        waiting = {name: task.remote(part, options, setup.threads) for name, part in parts.items()}
        for name, one in waiting.items():
            yield name, self.answer(one)

    def answer(self, task: Any) -> Any:
        """The result of a task. Errors are those of its function; Refusal with one sentence if its worker
        was lost too often.
        """
        try:
            return self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            raise Refusal(
                f"one task was lost {RETRIES + 1} times with its worker ({type(error).__name__}); give "
                "the workers more memory, or run without --ray."
            ) from None

    def setup(self) -> Setup:
        """Threads and device are those of this process, so that the numbers are the same."""
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        return Setup(self.model, self.draft, self.run_code, torch.get_num_threads(), device)

    def check_size(self, options: dict) -> None:
        """Raises Refusal with one sentence if no machine can hold a worker, which would wait for ever."""
        machines = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        needed = {"CPU": options["num_cpus"], "GPU": options["num_gpus"]}
        if not any(all(one.get(kind, 0) >= many for kind, many in needed.items()) for one in machines):
            raise Refusal(
                f"a worker needs {needed['CPU']} cores and {needed['GPU']} GPUs, as this process has, and no "
                "machine of the cluster has them; run without --ray, or set OMP_NUM_THREADS to fewer cores."
            )


_clusters: list[Cluster] = []  # the joined cluster, if any


def over(models: "dict[str, LoadedModel]", function: Callable, rows: Iterable[tuple], **given: Any) -> list:
    """Returns `function(models, *row, **given)` of each row, in the order of the rows: one after another with
    these models or, while a cluster is joined, in its workers with models of their own. Rows and results are
    pickled; progress is reported through `progress.each`.
    """
    if _clusters:
        return _clusters[-1].results(function, list(rows), given)
    return [function(models, *row, **given) for row in progress.each(rows)]


def measured(parts: dict[str, Callable], options: Any) -> Iterator[tuple[str, Iterable[dict]]]:
    """(name, rows) of each part of a benchmark, `part(options)`, in their order: one after another here or,
    while a cluster is joined, side by side on its machines.
    """
    if _clusters:
        yield from _clusters[-1].measured(parts, options)
    else:
        yield from ((name, part(options)) for name, part in parts.items())


@contextmanager
def cluster(
    address: str, model: str, draft: str, run_code: bool = False, workers: int | None = None
) -> Iterator[None]:
    """While this is open, `over` uses the workers of the cluster at `address` (HOST:PORT). `local` starts one
    on this machine, with `workers` cores (default: all). Raises Refusal with one sentence if Ray is
    missing or the cluster cannot be joined.
    """
    ray = imported()
    if address != LOCAL:
        check_address(address)
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")  # one attempt, not 20 of 40 s each
    options = {"num_cpus": workers, "include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, RuntimeError) as error:
        hint = "" if address == LOCAL else "; if it asks for a token, set RAY_AUTH_MODE=token"
        raise Refusal(f"cannot join the Ray cluster at {address}: {said_by(error)}{hint}.") from None
    _clusters.append(Cluster(ray, model, draft, run_code))
    try:
        yield
    finally:
        _clusters.pop()
        ray.shutdown()


def imported() -> ModuleType:
    """Ray, without its usage reports. Refusal with one sentence if it is not installed."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise Refusal("--ray needs Ray; install it with: pip install -r requirements-ray.txt") from None


def check_address(address: str) -> None:
    """Raises Refusal with one sentence if nothing answers there; Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Refusal(f"--ray takes the address of a Ray cluster as HOST:PORT, not {address!r}.")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except OSError:
        raise Refusal(
            f"no Ray cluster answers at {address}; start one with ray start --head, or leave the address out."
        ) from None


def in_worker(shared: tuple[Setup, Callable, dict], row: tuple) -> Any:
    """One row, in a worker process."""
    setup, function, given = shared
    return function(loaded(setup), *row, **given)


def part_in_worker(part: Callable, options: Any, threads: int) -> list[dict]:
    """The rows of a part of a benchmark, in a worker process."""
    import torch

    torch.set_num_threads(threads)
    return list(part(options))


@cache
def loaded(setup: Setup) -> "dict[str, LoadedModel]":
    """The models of this worker process, loaded at its first task."""
    import torch

    from explorer.runs.load_pair import load_models
    from explorer.tasks import sandbox

    torch.set_num_threads(setup.threads)
    if setup.run_code:
        sandbox.allow_unsealed()
    return load_models(setup.model, setup.draft, ("target", "draft"), setup.device)
