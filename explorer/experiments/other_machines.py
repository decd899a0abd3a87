"""What would speculation gain on another machine?

The forwards that the shipped models really made, timed as if by models of 8 and 0.5 billion parameters on
four classes of machine: seconds by the roofline model, joules by the energy of a byte and of an operation.
HADES, an accelerator for speculative decoding, is hardware that no program can reproduce; this calculation
takes its place, and no figure is the paper's.
"""

from dataclasses import replace
from itertools import product

from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis
from explorer.experiments.reading import highest, lowest, rows_of
from explorer.experiments.spread import over
from visualizers.analysis.roofline import DEVICES, DRAFT, TARGET, Device, forward_work, other_machine

PAPERS = ("hades",)
TOKENS, PROMPTS = 48, 6
WAYS = {
    "greedy": ("greedy", {}),
    "chain of 2": ("speculative", {"num_assistant_tokens": 2}),
    "chain of 6": ("speculative", {"num_assistant_tokens": 6}),
    "Sequoia's tree": ("sequoia", {}),
}
MANY = (1, 2, 4, 8, 16, 32, 64, 96, 128)  # tokens in a forward


def traces(models: Models, strategy: str, parameters: dict) -> list[Trace]:
    """The traces of a strategy on the same stories for all, without sampling where possible."""
    settings = {} if strategy == "greedy" else {"temperature": 0.0}
    asked = product([strategy], prompts("stories", PROMPTS), [TOKENS])
    return over(models, decoded, asked, **parameters, **settings)


def row(machine: str, device: Device, way: str, traces: list[Trace]) -> list:
    """Milliseconds and joules per token on one machine, and relative to plain decoding."""
    estimates = [other_machine(trace, len(trace.steps), device, TARGET, DRAFT) for trace in traces]
    tokens, seconds, joules, waited = (
        sum(one[key] for one in estimates) for key in ("tokens", "seconds", "joules", "waited")
    )
    plain = {key: sum(one["plain"][key] for one in estimates) for key in ("seconds", "joules")}
    gains = [plain["seconds"] / seconds, joules / plain["joules"]]
    return [
        machine,
        way,
        1e3 * seconds / tokens,
        gains[0],
        joules / tokens,
        gains[1],
        waited / len(estimates),
    ]


def run(models: Models) -> Result:
    """One row per machine and way of decoding; curves of the time of a forward over many tokens."""
    made = {way: traces(models, *how) for way, how in progress.each(WAYS.items())}
    rows = [
        row(name, device, way, made_traces)
        for name, device in DEVICES.items()
        for way, made_traces in made.items()
    ]
    says = []
    for name in DEVICES:
        best = max((r for r in rows if r[0] == name), key=lambda r: r[3])
        thrifty = min((r for r in rows if r[0] == name), key=lambda r: r[5])
        says.append(
            f"{name}: {best[1]} is fastest, {best[3]:.2f} × plain decoding; {thrifty[1]} takes the least "
            f"energy, {thrifty[5]:.2f} × that of plain decoding."
        )

    def grows(device: Device) -> list[list[float]]:
        quiet = replace(device, launch=0.0)
        one = forward_work(quiet, TARGET, 1, 0).seconds
        return [[float(many), forward_work(quiet, TARGET, many, 0).seconds / one] for many in MANY]

    lines = [Line(name, grows(device)) for name, device in DEVICES.items()]
    chart = Chart(
        "What a forward of many tokens costs", "tokens verified", "times a forward of one", lines, True
    )
    columns = [
        "machine",
        "way",
        "ms per token",
        "x plain",
        "joules per token",
        "of plain's energy",
        "waits for memory",
    ]
    return Result(columns, rows, says, chart)


def finding(answer: dict) -> str:
    """The machines that gain least and most, each with its fastest draft."""
    best: dict[str, dict] = {}
    for row in rows_of(answer):
        if row["machine"] not in best or row["x plain"] > best[row["machine"]]["x plain"]:
            best[row["machine"]] = row
    low, high = (pick(best.values(), "x plain") for pick in (lowest, highest))
    return (
        f"Calculated for {len(best)} classes of machine, speculation is {low['x plain']:.1f} times as fast "
        f"as plain decoding on a {low['machine']} ({low['way']}) and {high['x plain']:.1f} times on a "
        f"{high['machine']} ({high['way']})."
    )


STANDS = Basis({"prompts": PROMPTS})
