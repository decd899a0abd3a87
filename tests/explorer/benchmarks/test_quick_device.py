"""The ten minutes on a GPU: no part keeps the others from running, and the time is kept."""

from argparse import Namespace

import pytest

from explorer.benchmarks import quick_device


@pytest.fixture(autouse=True)
def _parts(monkeypatch):
    def fails(options):
        yield {"name": "before", "value": 1.0}
        raise RuntimeError("out of memory")

    def says(options):
        yield {"name": "device", "note": options.device}

    monkeypatch.setattr(quick_device, "PARTS", {"one": fails, "two": says})
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


def test_a_part_that_fails_says_why_and_the_next_one_runs_on_the_cpu_without_a_gpu():
    gpu, first, failed, device = quick_device.quick(Namespace(device="cuda"))
    assert gpu["name"] == "GPU" and first["name"] == "before"
    assert failed == {"name": "one", "note": "failed: RuntimeError: out of memory"}
    assert device["note"] == "cpu"


def test_what_comes_too_late_is_named(monkeypatch):
    monkeypatch.setattr(quick_device, "SECONDS", 0)
    rows = list(quick_device.quick(Namespace(device="cpu")))
    assert [row["name"] for row in rows] == ["one", "two"]
    assert all(row["note"].startswith("left out") for row in rows)
