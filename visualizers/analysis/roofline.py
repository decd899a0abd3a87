"""Another machine: what a lane's forwards would take there in seconds and joules, by the roofline model
(Williams, Waterman, Patterson 2009).

Everything is derived: the counts are the trace's, and a person types in the figures of the device and the
sizes of the models. Cache that belongs to side branches is not counted. A strategy whose parameters hold
`concurrent` has forwards in a step that need not wait for each other.
"""

import math
from dataclasses import dataclass, fields

from decoders.refusal import Refusal
from decoders.roles import DRAFT_ROLES
from decoders.trace.events import Commit, Forward, Propose, Step
from decoders.trace.trace import Trace


@dataclass(frozen=True)
class Device:
    """bandwidth: GB/s; compute: TFLOP/s; launch: microseconds that each forward takes besides; energies in
    picojoules. `apart`: the draft has a device of its own, of the same kind.
    """

    bandwidth: float
    compute: float
    launch: float
    byte_energy: float
    flop_energy: float
    apart: bool = False


@dataclass(frozen=True)
class Size:
    """A model's size: billions of parameters, bytes of each, kilobytes of cache per token."""

    parameters: float
    weight_bytes: float
    cache: float


# Round figures for classes of machines. Sources: the makers' data sheets for bandwidth and dense
# 16-bit arithmetic; energies have the order of magnitude published for such memories and processes.
DEVICES = {
    "data-centre GPU": Device(3000, 900, 20, 40, 0.7),
    "desktop GPU": Device(1000, 160, 20, 60, 1.5),
    "laptop": Device(90, 1, 20, 120, 15),
    "phone": Device(70, 2, 50, 40, 3),
}
TARGET, DRAFT = Size(8, 2, 131), Size(0.5, 2, 12)
# Name of a figure -> words, unit.
WORDS = {
    "bandwidth": ("memory", "GB/s"),
    "compute": ("arithmetic", "TFLOP/s"),
    "launch": ("fixed cost of a forward", "µs"),
    "byte_energy": ("energy per byte read", "pJ"),
    "flop_energy": ("energy per operation", "pJ"),
    "parameters": ("parameters", "billion"),
    "weight_bytes": ("size of a parameter", "bytes"),
    "cache": ("cache per token", "KB"),
}
SMALLEST, LARGEST = 1e-9, 1e9  # no figure of a machine lies beyond them, and their products are finite
MAY_BE_ZERO = ("launch", "byte_energy", "flop_energy", "cache")


def checked(made: Device | Size) -> Device | Size:
    """`made`, if its figures can be computed with. Raises Refusal with one sentence."""
    for field in fields(made):
        if field.name == "apart":
            continue
        value, (words, unit) = getattr(made, field.name), WORDS[field.name]
        zero = field.name in MAY_BE_ZERO
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            raise Refusal(f"{words} takes a number {'of 0 or more' if zero else 'above 0'}, in {unit}.")
        if value and not SMALLEST <= value <= LARGEST:
            raise Refusal(f"{words} takes a number from {SMALLEST:g} to {LARGEST:g}, in {unit}.")
    return made


@dataclass
class Work:
    """Seconds and joules; `waited`: the seconds in which memory was the bottleneck."""

    seconds: float = 0.0
    joules: float = 0.0
    waited: float = 0.0

    def add(self, other: "Work") -> None:
        """Takes in work that follows."""
        self.seconds += other.seconds
        self.joules += other.joules
        self.waited += other.waited


def parts(device: Device, moved: float, done: float) -> tuple[float, float]:
    """Seconds for `moved` bytes and for `done` operations; the slower of them is the roofline's."""
    return moved / (device.bandwidth * 1e9), done / (device.compute * 1e12)


def forward_work(device: Device, size: Size, tokens: float, context: float, share: float = 1.0) -> Work:
    """One forward of `tokens` tokens over a cache of `context` tokens through `share` of the layers: the
    slower of reading weights and cache and of two operations a parameter and token.
    """
    moved = share * (size.parameters * 1e9 * size.weight_bytes + size.cache * 1e3 * context)
    done = share * 2 * size.parameters * 1e9 * tokens
    memory, arithmetic = parts(device, moved, done)
    joules = (moved * device.byte_energy + done * device.flop_energy) * 1e-12
    return Work(
        device.launch * 1e-6 + max(memory, arithmetic), joules, memory if memory >= arithmetic else 0.0
    )


def ridge(device: Device, size: Size) -> float:
    """The number of tokens per forward at which arithmetic becomes the bottleneck, cache left aside."""
    return size.weight_bytes * device.compute * 1e12 / (2 * device.bandwidth * 1e9)


def step_work(step: Step, device: Device, sizes: dict[str, Size], context: int, at_once: bool) -> Work:
    """A step's forwards, one after the other; `at_once`: those of the draft beside those of the target."""
    rows = {"draft": Work(), "target": Work()}
    for event in step.events:
        if isinstance(event, Forward) and event.kind != "lens":
            role = "draft" if event.model in DRAFT_ROLES else "target"
            rows[role].add(forward_work(device, sizes[role], event.tokens, context, event.share))
    draft, target = rows["draft"], rows["target"]
    longer = max((draft, target), key=lambda work: work.seconds)
    total = Work(draft.seconds + target.seconds, draft.joules + target.joules, draft.waited + target.waited)
    return Work(longer.seconds, total.joules, longer.waited) if at_once else total


def other_machine(trace: Trace, count: int, device: Device, target: Size, draft: Size) -> dict:
    """The first `count` steps of a lane on `device`.

    seconds, joules, tokens   in all, the reading of the prompt included
    waited     share of the seconds in which memory was the bottleneck
    plain      {seconds, joules}: the same tokens with one forward of the target each
    race       [seconds, tokens] after each step
    """
    sizes = {"target": target, "draft": draft}
    at_once = device.apart and bool(trace.parameters.get("concurrent"))
    done, plain, tokens, race = Work(), Work(), 0, [[0.0, 0]]
    context, unread = len(trace.prompt), len(trace.prompt)
    for step in trace.steps[:count]:
        new = sum(len(event.nodes) for event in step.events if isinstance(event, Commit))
        if any(isinstance(event, Propose) and event.given for event in step.events):
            context, unread = context + new, unread + new  # not decoded by this lane: read first
            continue
        done.add(step_work(step, device, sizes, context, at_once))
        for place in range(new):
            plain.add(forward_work(device, target, 1 if tokens + place else unread, context + place))
        tokens, context = tokens + new, context + new
        race.append([done.seconds, tokens])
    return {
        "tokens": tokens,
        "seconds": done.seconds,
        "joules": done.joules,
        "waited": done.waited / done.seconds if done.seconds else 0.0,
        "plain": {"seconds": plain.seconds, "joules": plain.joules},
        "race": race,
    }


def sentence(device: Device, target: Size) -> str:
    """Whether memory or arithmetic is the bottleneck on this device, in words."""
    one = forward_work(device, target, 1, 0).seconds * 1e3
    bend = ridge(device, target)
    free = (
        f"and no longer for up to {bend:,.0f}: it is memory-bound, so verifying that many drafted tokens "
        "costs no extra time"
        if bend >= 2
        else "and longer for each further token: it is compute-bound, so verifying takes time"
    )
    return f"A forward of the target takes {one:,.3g} ms for one token {free}."
