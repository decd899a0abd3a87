"""What would speculation gain on another machine?

The forwards that the shipped models really made, timed as if by models of 8 and 0.5 billion parameters on
four classes of machine: seconds by the roofline model, joules by the energy of a byte and of an operation.
HADES, an accelerator for speculative decoding, is hardware that no program can reproduce; this calculation
takes its place, and no figure is the paper's.
"""

from dataclasses import replace

from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models
from explorer.experiments.asked import cases, without_sampling
from explorer.experiments.reading import Row, grouped, highest, lowest, rows_of
from explorer.experiments.sweep import Setting, Sweep
from visualizers.analysis.roofline import DEVICES, DRAFT, TARGET, Device, forward_work, other_machine

PAPERS = ("hades",)
TOKENS, PROMPTS = 48, 6
WAYS = {
    "greedy": ("greedy", {}),
    "chain of 2": ("speculative", {"num_assistant_tokens": 2}),
    "chain of 6": ("speculative", {"num_assistant_tokens": 6}),
    "Sequoia's tree": ("sequoia", {}),
}
ENERGY = "of plain's energy"
MANY = (1, 2, 4, 8, 16, 32, 64, 96, 128)  # tokens in a forward


def settings(models: Models) -> list[Setting]:
    """Every way of decoding, without sampling where possible, on the same stories."""
    return [
        Setting((None, way), name, given | without_sampling(name), cases("stories", PROMPTS, TOKENS))
        for way, (name, given) in WAYS.items()
    ]


def measures(traces: list[Trace], _: list[Trace]) -> list[Row]:
    """Milliseconds and joules per token on each machine, and relative to plain decoding."""
    return [{"machine": name, **estimated(device, traces)} for name, device in DEVICES.items()]


def estimated(device: Device, traces: list[Trace]) -> Row:
    """The cells of one machine."""
    estimates = [other_machine(trace, len(trace.steps), device, TARGET, DRAFT) for trace in traces]
    tokens, seconds, joules, waited = (
        sum(one[key] for one in estimates) for key in ("tokens", "seconds", "joules", "waited")
    )
    plain = {key: sum(one["plain"][key] for one in estimates) for key in ("seconds", "joules")}
    return {
        "ms per token": 1e3 * seconds / tokens,
        "x plain": plain["seconds"] / seconds,
        "joules per token": joules / tokens,
        ENERGY: joules / plain["joules"],
        "waits for memory": waited / len(estimates),
    }


def says(rows: list[Row]) -> list[str]:
    """The fastest and the thriftiest way on each machine."""
    sentences = []
    for name, own in grouped(rows, "machine").items():
        best, thrifty = highest(own, "x plain"), lowest(own, ENERGY)
        sentences.append(
            f"{name}: {best['way']} is fastest, {best['x plain']:.2f} × plain decoding; {thrifty['way']} "
            f"takes the least energy, {thrifty[ENERGY]:.2f} × that of plain decoding."
        )
    return sentences


def grows(device: Device) -> list[list[float]]:
    """The time of a forward of many tokens, as a multiple of that of one."""
    quiet = replace(device, launch=0.0)
    one = forward_work(quiet, TARGET, 1, 0).seconds
    return [[float(many), forward_work(quiet, TARGET, many, 0).seconds / one] for many in MANY]


SWEEP = Sweep(
    names=("machine", "way"),
    settings=settings,
    measures=measures,
    says=says,
    chart=lambda rows: Chart(
        "What a forward of many tokens costs",
        "tokens verified",
        "times a forward of one",
        [Line(name, grows(device)) for name, device in DEVICES.items()],
        log=True,
    ),
    order=lambda row: list(DEVICES).index(row["machine"]),
    sampled={"prompts": PROMPTS},
)


def finding(answer: dict) -> str:
    """The machines that gain least and most, each with its fastest draft."""
    best = [highest(own, "x plain") for own in grouped(rows_of(answer), "machine").values()]
    low, high = (pick(best, "x plain") for pick in (lowest, highest))
    return (
        f"Calculated for {len(best)} classes of machine, speculation is {low['x plain']:.1f} times as fast "
        f"as plain decoding on a {low['machine']} ({low['way']}) and {high['x plain']:.1f} times on a "
        f"{high['machine']} ({high['way']})."
    )
