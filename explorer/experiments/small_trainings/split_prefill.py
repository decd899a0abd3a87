"""Can devices share the reading of a text without waiting for each other?

ZeCO (2025) in miniature, for linear attention: a layer keeps one state instead of keys and values, so a
device that holds a segment of the text needs only the state in front of it. Four simulated devices pass whole
states on, gather them all, or pass them on in slices while each works on its own segment. A model of two such
layers is trained here on text that the shipped target wrote: do all ways give what one device computes token
by token, how many bytes are sent, when is the last device done, and what is lost if no state is passed on?
The times come from a simulation in units of one state's transfer, with assumed times of work; nothing is
decoded, only read.
"""

from collections.abc import Callable
from functools import partial
from math import ceil

import torch

from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models.device_scans import Scan, all_gather, all_scan, apart, serial
from explorer.experiments.models.linear_attention import LinearModel, in_order, on_devices, own_state
from explorer.experiments.models.small import fit, next_loss, own_text
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import rows_of, two
from explorer.timing import in_turn

PAPERS = ("zeco",)
ROWS, HELD_OUT, LENGTH, STEPS = 192, 32, 96, 300  # texts for training, held-out texts, their tokens; batches
SHAPE = dict(width=64, layers=2, heads=4, size=16)
DEVICES, SLICES, TIMES = 4, 8, 5
SUMS, OWN, LAST = 0.25, 1.0, 0.25  # assumed times: own state, own outputs, adding the received state's part
TICK, IN_A_COLUMN = 0.125, 4  # time of a tick; ticks per column of the timeline
BYTES = 4  # per number
UP_TO = 16  # maximum number of devices in the chart

Way = Callable[[list[torch.Tensor], list[torch.Tensor]], Scan]
WAYS: dict[str, Way] = {
    "passed on whole": serial,
    "gathered by all": all_gather,
    f"passed on in {SLICES} slices": partial(all_scan, slices=SLICES),
}


def trained(models: Models) -> tuple[LinearModel, torch.Tensor]:
    """(model, texts that it has not read)."""
    with progress.part(0.4):
        rows = own_text(models, ROWS + HELD_OUT, LENGTH)
    torch.manual_seed(0)
    model = LinearModel(models["target"].engine.vocabulary, **SHAPE)
    with progress.part(0.9):
        fit(model.parameters(), lambda some: next_loss(model(some), some), rows[:ROWS], STEPS)
    return model.requires_grad_(False), rows[ROWS:]


def of_a_layer(devices: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Random states and decays of the segments of one text in a layer of this shape."""
    generator = torch.Generator().manual_seed(0)
    k, v = torch.randn(2, devices, SHAPE["heads"], 4, SHAPE["size"], generator=generator).unbind(0)
    falls = -torch.rand(k.shape, generator=generator)
    states, decays = zip(*map(own_state, k, v, falls), strict=True)
    return list(states), list(decays)


def done(scan: Scan) -> list[float]:
    """When each device has all outputs: its own part while states travel, then the received state's part."""
    return [SUMS + max(OWN, ready) + LAST for ready in scan.ready]


def timelines(scans: dict[str, Scan]) -> list[Heat]:
    """Strips over time for each way and device: when it works or waits, and when it sends."""
    last_of_all = max(max(done(scan)) for scan in scans.values())
    columns = ceil(last_of_all / (TICK * IN_A_COLUMN))
    ticks = [TICK * at for at in range(columns * IN_A_COLUMN)]
    works, sends = [], []
    for name, scan in scans.items():
        for device, (ready, last) in enumerate(zip(scan.ready, done(scan), strict=True)):
            label = f"{name}, {device + 1}"
            waits = (SUMS + OWN, SUMS + max(OWN, ready))
            works.append(strip(label, [overlap(at, (0.0, last)) - 0.5 * overlap(at, waits) for at in ticks]))
            spans = [(SUMS + one.start, SUMS + one.end) for one in scan.sent if one.device == device]
            sends.append(strip(label, [sum(overlap(at, span) for span in spans) for at in ticks]))
    names = [f"{TICK * IN_A_COLUMN * (at + 0.5):g}" for at in range(columns)]  # a column's middle
    unit = f"a cell is {TICK:g} of a state's transfer"
    return [
        Heat(
            "Which device works when",
            f"1 works, 0.5 waits for a state, 0 is done; {unit}",
            names,
            works,
            0,
            1,
        ),
        Heat("Which device sends when", f"share of the time in which it sends; {unit}", names, sends, 0, 1),
    ]


def strip(label: str, ticks: list[float]) -> Strip:
    """A row of a timeline, with IN_A_COLUMN ticks per column."""
    each = [f"cell {at + 1}" for at in range(IN_A_COLUMN)]
    return Strip(label, each, [ticks[at : at + IN_A_COLUMN] for at in range(0, len(ticks), IN_A_COLUMN)])


def overlap(at: float, span: tuple[float, float]) -> float:
    """The share of the tick starting at `at` that lies in a span."""
    return max(0.0, min(at + TICK, span[1]) - max(at, span[0])) / TICK


def of_keys_and_values(stretch: int) -> int:
    """Bytes that the busiest device sends if keys and values travel around a ring, as softmax attention
    needs.
    """
    return (DEVICES - 1) * stretch * 2 * SHAPE["heads"] * SHAPE["size"] * BYTES


def curves() -> Chart:
    """When the last device has its state, against the number of devices."""
    counts = [2**n for n in range(1, UP_TO.bit_length())]
    lines = [
        Line(name, [[float(count), way(*of_a_layer(count)).ready[-1]] for count in counts])
        for name, way in WAYS.items()
    ]
    return Chart("Until the last device has its state", "devices", "transfers of a state", lines, log=True)


def run(models: Models) -> Result:
    """One row per way in which states travel."""
    with progress.part(0.9):
        model, held = trained(models)
    with torch.no_grad():
        wanted = model(held, in_order)
        alone = float(next_loss(model(held, partial(on_devices, devices=DEVICES, scan=apart)), held))
    whole = float(next_loss(wanted, held))
    scans = {name: way(*of_a_layer(DEVICES)) for name, way in WAYS.items()}
    table, off = [], 0.0
    for name, scan in progress.each(scans.items(), until=0.5):
        with torch.no_grad():
            output = model(held, partial(on_devices, devices=DEVICES, scan=WAYS[name]))
        sent = [sum(one.numbers for one in scan.sent if one.device == device) for device in range(DEVICES)]
        off = max(off, float((output - wanted).abs().max()))
        table.append(
            [name, BYTES * max(sent), BYTES * sum(sent), BYTES * scan.held, max(scan.ready), max(done(scan))]
        )
    with torch.inference_mode():
        split, token_by_token = in_turn([lambda: model(held), lambda: model(held, in_order)], times=TIMES)
    for _ in progress.each([None]):
        pictures = timelines(scans)
    stretch = LENGTH // DEVICES
    says = [
        f"With all states passed on, the logits differ from reading in order by {off:.1e} at most.",
        f"Held-out loss is {whole:.2f} nats with the states, and {alone:.2f} if each device reads as if its "
        "stretch began the text.",
        f"For a stretch of {stretch} tokens, keys and values around a ring, as softmax attention needs "
        f"them, would be {of_keys_and_values(stretch):,} bytes per device and layer (computed), and twice "
        "that for twice the text; a state keeps its size.",
        f"Times are of the simulation: {SUMS:g} to get the own state, {OWN:g} for the own outputs while "
        f"states travel, {LAST:g} for what the state adds. Bytes are per layer and text.",
        f"In this process, without any other device, reading {DEVICES} stretches one after the other takes "
        f"{split / token_by_token:.2f} of the time of reading token by token.",
    ]
    columns = [
        "states are",
        "most bytes a device sends",
        "bytes of all devices",
        "bytes of states held",
        "transfers until the last state",
        "last device done",
    ]
    return Result(columns, table, says, curves(), pictures=pictures)


def finding(answer: dict) -> str:
    """Slices against the two alternatives."""
    whole, gathered, sliced = rows_of(answer)
    return (
        f"When {DEVICES} simulated devices share a text, the last one has its state after "
        f"{two(sliced['transfers until the last state'])} transfers if states are passed on in slices and "
        f"after {two(whole['transfers until the last state'])} if whole; the devices send "
        f"{sliced['bytes of all devices']:,} bytes instead of the {gathered['bytes of all devices']:,} of "
        "gathering them."
    )


STANDS = Basis(exact="transfers and bytes are counted in a simulation without chance")
