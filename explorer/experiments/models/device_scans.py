"""How the states of linear attention travel between devices that hold one segment of a text each (ZeCO,
2025): passed on whole, gathered by all, or passed on in slices. The devices are simulated in one process:
`before` is computed from nothing but what a device has or was sent, and every message is written down.

Times are in units of one state's transfer between neighbours. A link carries one message at a time; updating
a slice takes no time.
"""

from dataclasses import dataclass

import torch

from decoders.refusal import Refusal


@dataclass(frozen=True)
class Sent:
    """A message from one device to the next: how many numbers it has, and when it is sent and received."""

    device: int
    numbers: int
    start: float
    end: float


@dataclass(frozen=True)
class Scan:
    """For each device the state in front of its segment, the time at which it has that state, and the maximum
    number of state numbers that it holds; also all messages.
    """

    before: list[torch.Tensor]
    sent: list[Sent]
    ready: list[float]
    held: int


def all_scan(states: list[torch.Tensor], decays: list[torch.Tensor], slices: int = 8) -> Scan:
    """ZeCO: a state is cut into `slices` along its keys. A device that receives a slice of the state in front
    of it updates it and sends it on at once. slices = 1 is serial passing.

    states: of each stretch alone [..., K, V]; decays: of each stretch [..., K]. ValueError unless 1 <= slices
    <= K.
    """
    size = states[0].shape[-2]
    if not 1 <= slices <= size:
        raise Refusal(f"A state of {size} rows cannot be cut into {slices} slices; give 1 to {size}.")
    rows = torch.arange(size).tensor_split(slices)
    coming = [torch.zeros_like(states[0][..., at, :]) for at in rows]
    arrived = [0.0] * slices
    before, sent, ready = [], [], []
    for device, (state, decay) in enumerate(zip(states, decays, strict=True)):
        before.append(torch.cat(coming, -2))
        ready.append(arrived[-1])
        if device == len(states) - 1:
            break
        coming = [
            decay[..., at, None] * one + state[..., at, :] for at, one in zip(rows, coming, strict=True)
        ]
        free = 0.0
        for number, one in enumerate(coming):
            start = max(free, arrived[number])
            free = start + len(rows[number]) / size
            sent.append(Sent(device, one.numel(), start, free))
            arrived[number] = free
    return Scan(before, sent, ready, states[0].numel())


def serial(states: list[torch.Tensor], decays: list[torch.Tensor]) -> Scan:
    """Every device waits for the whole state before its segment and sends on the whole state after it."""
    before, sent, coming = [], [], torch.zeros_like(states[0])
    for device, (state, decay) in enumerate(zip(states, decays, strict=True)):
        before.append(coming)
        coming = decay[..., None] * coming + state
        if device < len(states) - 1:
            sent.append(Sent(device, coming.numel(), float(device), device + 1.0))
    return Scan(before, sent, [float(device) for device in range(len(states))], states[0].numel())


def all_gather(states: list[torch.Tensor], decays: list[torch.Tensor]) -> Scan:
    """Every device receives the own states and decays of all devices, once around a ring, and adds up those
    before it.
    """
    count = len(states)
    boxes = [{device: (states[device], decays[device])} for device in range(count)]
    sent = []
    for turn in range(count - 1):
        for device in range(count):
            source = (device - turn) % count
            state, decay = boxes[device][source]
            boxes[(device + 1) % count][source] = (state, decay)
            sent.append(Sent(device, state.numel() + decay.numel(), float(turn), turn + 1.0))
    before = []
    for device, box in enumerate(boxes):
        state = torch.zeros_like(states[0])
        for source in range(device):
            state = box[source][1][..., None] * state + box[source][0]
        before.append(state)
    held = max(sum(state.numel() for state, _ in box.values()) for box in boxes)
    return Scan(before, sent, [float(count - 1)] * count, held)


def apart(states: list[torch.Tensor], decays: list[torch.Tensor]) -> Scan:
    """Nothing is sent: every device reads as if its segment began the text. This shows the value of the
    states.
    """
    zeros = [torch.zeros_like(state) for state in states]
    return Scan(zeros, [], [0.0] * len(states), states[0].numel())
