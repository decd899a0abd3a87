"""Experiments in the workers of a Ray cluster: the answer of one process, also when a worker is lost; and the
sentences where it cannot be. What needs Ray is skipped where it is not installed.
"""

import importlib.util
import json
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from explorer import experiments
from explorer.cli import main
from explorer.experiments import progress, spread
from explorer.experiments.asked import decoded
from explorer.experiments.sweeps import draft_length
from tests.helpers import tiny_models

has_ray = importlib.util.find_spec("ray") is not None
with_ray = pytest.mark.skipif(not has_ray, reason="Ray is not installed: see requirements-ray.txt")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, str]:
    """The folders of a target and a draft, from which every worker loads its own."""
    folder = tmp_path_factory.mktemp("spread")
    return {role: tiny_models.save(folder / role, seed=at) for at, role in enumerate(("target", "draft"))}


@pytest.fixture(scope="module")
def cluster(saved):
    with spread.cluster(spread.LOCAL, saved["target"], saved["draft"], workers=2):
        yield


@pytest.fixture
def here(saved, monkeypatch):
    """A call that runs in this process, whatever cluster is joined, with models from the same folders."""
    from explorer.runs.load_pair import load_models

    models = load_models(saved["target"], saved["draft"], ("target", "draft"), "cpu")

    def run(name: str) -> dict:
        with monkeypatch.context() as patch:
            patch.setattr(spread, "_clusters", [])
            return experiments.answered(experiments.find(name), models)

    run.models = models
    return run


def spread_out(experiment: experiments.Experiment, models) -> tuple[dict, list[float]]:
    """The answer by the cluster's workers, and the shares that were reported."""
    shares: list[float] = []
    with progress.watched(shares.append):
        return experiments.answered(experiment, models), shares


@with_ray
@pytest.mark.parametrize("name", ["draft-length", "acceptance-by-rank", "other-machines"])
def test_the_workers_answer_what_one_process_does(name, short, here, cluster):
    answer, shares = spread_out(experiments.find(name), here.models)
    assert json.dumps(answer) == json.dumps(here(name))
    assert all(one <= two + 1e-9 for one, two in pairwise(shares)) and shares[-1] == pytest.approx(1)


def killed_once(marker: Path, *case, **parameters):
    """`decoded`, but the first worker that comes here is killed in the middle of its task."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return decoded(*case, **parameters)
    os.kill(os.getpid(), signal.SIGKILL)


@with_ray
def test_a_lost_worker_costs_its_task_only(short, here, cluster, tmp_path):
    expected = here("draft-length")
    marker = tmp_path / "killed"
    sweep = replace(draft_length.SWEEP, decode=partial(killed_once, marker))
    answer, shares = spread_out(replace(experiments.find("draft-length"), run=sweep.run), here.models)
    assert marker.exists() and answer == expected and shares[-1] == pytest.approx(1)


def always_killed(models):
    os.kill(os.getpid(), signal.SIGKILL)


def process(models, number: int) -> tuple[int, int, int, int]:
    return number, os.getpid(), id(models["target"]), torch.get_num_threads()


@with_ray
def test_a_worker_loads_its_models_once_and_has_the_threads_of_the_main_process(here, cluster):
    results = spread.over(here.models, process, [(number,) for number in range(12)])
    assert [number for number, *_ in results] == list(range(12))
    workers = {pid for _, pid, *_ in results}
    assert os.getpid() not in workers and len({tuple(rest) for _, *rest in results}) == len(workers) <= 2
    assert {threads for *_, threads in results} == {torch.get_num_threads()}


def refuses(models, number: int):
    raise ValueError(f"{number} is too small.")


@with_ray
def test_errors_of_a_task_are_those_of_one_process(here, cluster):
    with pytest.raises(ValueError, match=r"^7 is too small\.$"):
        spread.over(here.models, refuses, [(7,)])


@with_ray
def test_a_task_that_always_loses_its_worker_ends_with_a_sentence(here, cluster, monkeypatch):
    monkeypatch.setattr(spread, "RETRIES", 0)
    with pytest.raises(ValueError, match="one task was lost 1 times with its worker"):
        spread.over(here.models, always_killed, [()])


@with_ray
def test_a_worker_larger_than_every_machine_is_refused(here, cluster, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1000)
    with pytest.raises(ValueError, match="a worker needs 1000 cores"):
        spread.over(here.models, process, [(1,)])


def part(name: str, options) -> list[dict]:
    began = time.monotonic()
    time.sleep(0.3)
    note = {"pid": os.getpid(), "model": options.model, "threads": torch.get_num_threads()}
    return [{"name": name, "note": note | {"from": began, "to": time.monotonic()}}]


@with_ray
def test_a_machine_measures_one_part_of_a_benchmark_at_a_time(cluster):
    """The cluster is one machine of two cores: the parts follow each other, in workers."""
    parts = {name: partial(part, name) for name in ("decoding", "lanes")}
    answers = list(spread.measured(parts, SimpleNamespace(model="mine")))
    assert [name for name, _ in answers] == ["decoding", "lanes"]
    (first,), (second,) = (rows for _, rows in answers)
    assert (first["name"], second["name"]) == ("decoding", "lanes")
    notes = sorted((first["note"], second["note"]), key=lambda note: note["from"])
    assert notes[0]["to"] <= notes[1]["from"]
    for note in notes:
        assert note["pid"] != os.getpid() and note["model"] == "mine"
        assert note["threads"] == torch.get_num_threads()


def test_without_a_cluster_the_parts_are_measured_here(monkeypatch):
    monkeypatch.setattr(spread, "_clusters", [])
    parts = {name: partial(part, name) for name in ("decoding", "lanes")}
    answers = list(spread.measured(parts, SimpleNamespace(model="mine")))
    assert [rows[0]["note"]["pid"] for _, rows in answers] == [os.getpid()] * 2


def refused(capsys, *arguments: str) -> str:
    """The line that a mistake is answered with."""
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", *arguments])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and error.count("\n") == 1
    return error


def test_without_ray_one_sentence_names_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(SystemExit):
        main(["bench", "--only", "decoding", "--ray"])
    assert "--ray needs Ray" in capsys.readouterr().err
    line = refused(capsys, "draft-length", "--ray")
    assert "--ray needs Ray; install it with: pip install -r requirements-ray.txt" in line


def test_an_experiment_that_runs_in_one_process_names_those_that_can_be_spread(capsys):
    line = refused(capsys, "spec-bench", "--ray")
    assert "spec-bench runs in one process; --ray spreads acceptance-by-rank, api-calls, cost-and-ac" in line


@with_ray
@pytest.mark.parametrize("address", ["nonsense", "host:port", ":6379", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(address, capsys):
    assert f"as HOST:PORT, not {address!r}." in refused(capsys, "draft-length", "--ray", address)


@with_ray
def test_an_address_where_nothing_answers_is_refused(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"  # taken, but nobody listens
        line = refused(capsys, "draft-length", "--ray", address)
    assert f"no Ray cluster answers at {address}" in line
