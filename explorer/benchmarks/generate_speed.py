"""`python -m explorer bench`: most figures are ratios of two things measured alternately in one run on one
machine, with tracing on. Absolute times say little on a shared machine; ratios are stable.

`decoding`: tokens/s against transformers' `generate` on the same model, threads and dtype. `lanes`: lanes
decoded together against one after another. `page` and `start` use the real app in headless Chromium (see
page_latency.py); `plotly` compares the player with Plotly on the same steps. `visitors`: many people at once.
`soak`: memory after a thousand short runs. `big`: four lanes of 512 tokens in the page. `open`: a page that
stays open for a thousand runs. `vocabulary`: what a step costs outside the model with 152,000 and 200,000
tokens.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable

from decoders.refusal import Refusal
from explorer.benchmarks import publish_measured
from explorer.experiments import spread
from explorer.runs.load_pair import load_models
from explorer.timing import PROMPTS, alternate, figure, generator, ours, plain_models

Part = Callable[[argparse.Namespace], Iterable[dict]]


def run(options: argparse.Namespace) -> None:
    """Runs the benchmarks of the requested parts, family or device; prints a table or one JSON object. Raises
    Refusal with one sentence for an unknown part or family.
    """
    if options.store:
        publish_measured.check(options)
    if options.family is not None:
        known = families()
        if options.family not in known:
            raise Refusal(f"there is no benchmark of {options.family!r}; choose {', '.join(known)}.")
        show(options, {options.family: known[options.family]}, "--family {}")
        return
    if options.quick and options.device is None:
        raise Refusal("--quick measures one device: add --device cuda, or --device cpu.")
    if options.device is not None:
        from explorer.benchmarks import device_speed, quick_device

        if options.quick:
            show(options, {"quick": quick_device.quick}, f"--device {options.device} --{{}}")
        else:
            show(options, {options.device: device_speed.device}, "--device {}")
        return
    for name in options.only or []:
        if name not in PARTS:
            raise Refusal(f"there is no benchmark {name!r}; choose one of: {', '.join(PARTS)}.")
    asked = {name: part for name, part in PARTS.items() if not options.only or name in options.only}
    show(options, asked, "--only {}")


def families() -> dict[str, Part]:
    """The families that have a benchmark."""
    from explorer.benchmarks import (
        constraints_family,
        diffusion_family,
        heads_family,
        search_family,
        speculative_family,
    )

    return {
        "speculative": speculative_family.speculative,
        "search": search_family.search,
        "diffusion": diffusion_family.diffusion,
        "heads": heads_family.heads,
        "constraints": constraints_family.constraints,
    }


def show(options: argparse.Namespace, parts: dict[str, Part], command: str) -> None:
    """Measures the parts one by one and prints each row as soon as it is known, or all of them as JSON. With
    `--store` a part is stored when it is done; `command`: the options that measure one.
    """
    rows, began = [], time.monotonic()
    for name, measured in spread.measured(parts, options):
        first = len(rows)
        for row in measured:
            rows.append({"part": name} | row)
            if not options.json:
                print(line(rows[-1]), flush=True)
        took, began = time.monotonic() - began, time.monotonic()
        if options.store:
            publish_measured.keep(name, command.format(name), took, rows[first:])
    if options.json:
        print(json.dumps({"rows": rows}))


def line(row: dict) -> str:
    """A row of the printed table."""
    if "note" in row:
        return f"{row['part']:11} {row['name']:58} {row['note']}"
    met = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    measured = f"{row['value']:8.2f} {row['unit']:6}"
    return f"{row['part']:11} {row['name']:58} {measured} goal {row['goal']:12} {met}"


def decoding(options: argparse.Namespace) -> list[dict]:
    """Our strategies against `generate` in turn, with equal token counts: the median of the ratios."""
    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    plain = plain_models(options, models)
    prompts = [models["target"].encode(text) for text in PROMPTS]
    greedy, generate = ours(models, "greedy"), generator(plain["target"])
    speculative = ours(models, "speculative")
    beams = ours(models, "beam", num_beams=4), generator(plain["target"], num_beams=4)
    assisted = generator(plain["target"], assistant_model=plain["draft"])
    pairs = [
        ("greedy against generate(do_sample=False)", greedy, generate, 1.0),
        ("beam 4 against generate(num_beams=4)", *beams, 1.2),
        ("speculative against generate(assistant_model=...)", speculative, assisted, 1.2),
        ("speculative against our greedy", speculative, greedy, 1.3),
        ("speculative against generate(do_sample=False)", speculative, generate, None),
        ("speculative_tree against our greedy", ours(models, "speculative_tree"), greedy, None),
        ("prompt_lookup against our greedy", ours(models, "prompt_lookup"), greedy, None),
    ]
    rows = []
    for name, mine, other, goal in pairs:
        first, second, ratio = alternate(mine, other, prompts)
        rows.append(figure(name, ratio, "x", goal, at_least=True, tokens_per_second=[first, second]))
    return rows


def lanes(options: argparse.Namespace) -> Iterable[dict]:
    """Four lanes together against one after another: what batching across lanes gains."""
    from explorer.benchmarks import joint_lanes

    return joint_lanes.joint(options)


def page(options: argparse.Namespace) -> list[dict]:
    """In headless Chromium: time from event to paint with four lanes, and of a whole run with three lanes."""
    from explorer.benchmarks import page_latency

    return page_latency.drawing(options) + page_latency.running(options)


def plotly(options: argparse.Namespace) -> list[dict]:
    """Main-thread time for a step of four lanes: the player's SVG against `Plotly.react`."""
    from explorer.benchmarks import player_and_plotly

    return player_and_plotly.drawn_twice(options)


def start(options: argparse.Namespace) -> list[dict]:
    """What a command costs; time from `python app.py` to a usable page, and from its first byte to the stored
    trace.
    """
    from explorer.benchmarks import command_starts, page_latency

    return [*command_starts.starts(options), *page_latency.starting(options)]


def visitors(options: argparse.Namespace) -> Iterable[dict]:
    """Many people who press Run at once: how long each waits for a step, and how many steps never arrive."""
    from explorer.benchmarks import many_visitors

    return many_visitors.visiting(options)


def soak(options: argparse.Namespace) -> Iterable[dict]:
    """The app's memory over a thousand short runs."""
    from explorer.benchmarks import many_visitors

    return many_visitors.soaking(options)


def big(options: argparse.Namespace) -> list[dict]:
    """Four lanes of 512 tokens with thousands of nodes each: scrubbing, pauses, memory."""
    from explorer.benchmarks import large_runs

    return large_runs.big(options)


def open_page(options: argparse.Namespace) -> Iterable[dict]:
    """A page that stays open: its memory, and how soon Microscope has its first figure."""
    from explorer.benchmarks import open_page

    yield from open_page.first_figure(options)
    yield from open_page.left_open(options)


def vocabulary(options: argparse.Namespace) -> Iterable[dict]:
    """What a step costs outside the model where the vocabulary is large."""
    from explorer.benchmarks import large_vocabulary

    return large_vocabulary.vocabulary(options)


PARTS: dict[str, Part] = {
    "decoding": decoding,
    "lanes": lanes,
    "page": page,
    "plotly": plotly,
    "start": start,
    "visitors": visitors,
    "soak": soak,
    "big": big,
    "open": open_page,
    "vocabulary": vocabulary,
}
