"""The timeline of devices that share a text, by hand; the bytes of the table are those of the shape."""

import pytest

from explorer.experiments.small_trainings import split_prefill as split


def test_when_devices_are_done():
    """.25 for the own state, then at least 1 for the own outputs or until the state is there, then .25."""
    scans = {name: way(*split.of_a_layer(4)) for name, way in split.WAYS.items()}
    whole, gathered, sliced = (split.done(scan) for scan in scans.values())
    assert whole == [1.5, 1.5, 2.5, 3.5] and gathered == [3.5] * 4
    assert sliced == pytest.approx([1.5, 1.5, 1.625, 1.75])  # states after 0, 1, 1.125, 1.25 transfers


def test_the_strips_of_a_device():
    """The third device that waits for a whole state: works until 1.25, waits until 2.25, works until 2.5; its
    link is busy from 2.25 to 3.25.
    """
    works, sends = split.timelines({"whole": split.serial(*split.of_a_layer(4))})
    row = sum(works.rows[2].values, [])
    assert row == [1.0] * 10 + [0.5] * 8 + [1.0] * 2 + [0.0] * 8
    assert works.columns[:3] == ["0.25", "0.75", "1.25"]
    assert sum(sends.rows[2].values, []) == [0.0] * 18 + [1.0] * 8 + [0.0] * 2
    assert not any(sum(sends.rows[3].values, []))  # the last one sends nothing


def test_the_ring_of_keys_and_values():
    """Three rounds of 24 keys and values of 4 heads of 16 numbers, in four bytes."""
    assert split.of_keys_and_values(24) == 3 * 24 * 2 * 64 * 4
