"""The commands of `python -m explorer`. Strategies are known by their declarations, never by name.

The exit status is 0 on success and 2 on unusable arguments, with one line that says what to do.
"""

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path

from decoders import files, registry
from decoders.models import address
from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer import experiments, lens_command, shipped
from explorer.acceptance import command as acceptance
from explorer.catalog import origins, papers
from explorer.cli_options import parser
from explorer.experiments import spread
from explorer.runs.load_pair import load_models
from explorer.runs.run_summary import before_text, sequences, summary
from explorer.runs.validation import MAX_LANES
from explorer.tasks import sandbox
from explorer.text_file import read_text
from visualizers.analysis.cost_summary import strip

PAGES = (".html", ".htm")  # suffixes for which --out writes a page; for all others it writes the data


def main(arguments: list[str] | None = None) -> None:
    """Runs one command; a user's mistake ends it with one line and exit status 2."""
    top = parser()
    options = top.parse_args(arguments)
    command = COMMANDS[options.command]
    if getattr(options, "run_code", False):
        sandbox.allow_unsealed()
    if hasattr(options, "engine"):
        options.model = address.held_by(options.engine, options.model)
    try:
        for path in getattr(options, "strategies", []):
            registry.include(path)
        command(options)
    except BrokenPipeError:
        sys.stderr.close()
    except (Refusal, OSError) as error:
        full = isinstance(error, OSError) and error.errno in files.FULL
        problem = "the disk is full; free some space, then run this again." if full else error
        top.exit(2, f"{top.prog} {options.command}: {problem}\n")


def list_strategies(options: argparse.Namespace) -> None:
    """Prints every strategy with its parameters."""
    declared = [s.declaration() for s in registry.strategies().values()]
    if options.json:
        print(json.dumps(declared))
        return
    for family, heading in registry.FAMILIES.items():
        members = [d for d in declared if d["family"] == family]
        if members:
            print(f"\n{heading}")
        for d in members:
            print(f"  {d['name']:20} {d['summary']}")
            for p in d["parameters"]:
                given = str(p["default"]).replace("\n", "\\n")  # one line per parameter
                print(f"  {'':20}   {p['name']} = {given}: {p['help']}")


def list_papers(options: argparse.Namespace) -> None:
    """Prints every paper with its status, or writes the map of methods to a file."""
    if options.graph:
        from explorer.catalog.method_map import method_map
        from visualizers import graphs

        graphs.save(method_map(), options.graph)
        return
    rows = papers.papers()
    if options.json:
        print(json.dumps(rows))
        return
    for row in sorted(rows, key=lambda r: (papers.STATUSES.index(r["status"]), r["family"], r["slug"])):
        print(
            f"{row['status']:9} {row['family']:30} {origins.cited(row)}"
            + (f"  {row['link']}" if row["link"] else "")
            + (f"  ({'; '.join(filter(None, (', '.join(row['how']), row['lacks'])))})" if row["how"] else "")
        )
    print(papers.summary(rows))


def run(options: argparse.Namespace) -> None:
    """Decodes one prompt and prints the text and its costs, or one JSON object."""
    lanes = requested_lanes(options)
    if len(lanes) != 1:
        raise Refusal("run takes one --strategy; use compare to see several side by side.")
    prompt, (trace,) = decode(options, lanes)
    if options.figure or options.graph or options.drafted_tokens:
        save_extract(trace, options)
    elif options.out:
        save(options.out, prompt, options, [trace])
    if options.json:
        print(json.dumps(summary(trace)))
    else:
        print_result(prompt, trace)


def compare(options: argparse.Namespace) -> None:
    """Decodes one prompt with each strategy and prints their texts and costs, or one JSON object."""
    lanes = requested_lanes(options)
    prompt, traces = decode(options, lanes)
    if options.out:
        save(options.out, prompt, options, traces)
    if options.json:
        print(json.dumps({"prompt": prompt, "lanes": [summary(trace) for trace in traces]}))
        return
    for number, trace in enumerate(traces, 1):
        print(f"{number}. {trace.title}")
        print_result(prompt, trace)
        print()


def requested_lanes(options: argparse.Namespace) -> list[dict]:
    """Returns the lanes that the options ask for, checked: `{strategy, parameters, seed}`.

    A --set before the first --strategy belongs to that first strategy. Raises Refusal with one sentence.
    """
    lanes: list[tuple[str, dict]] = [(value, {}) for kind, value in options.lanes if kind == "NAME"]
    if len(lanes) > MAX_LANES:
        raise Refusal(f"compare takes at most {MAX_LANES} strategies, not {len(lanes)}.")
    index = -1
    for kind, value in options.lanes:
        if kind == "NAME":
            index += 1
        else:
            key, setting = split_setting(value)
            lanes[max(index, 0)][1][key] = setting
    return [
        {"strategy": name, "parameters": registry.get(name).check(given), "seed": options.seed}
        for name, given in lanes
    ]


def decode(options: argparse.Namespace, lanes: list[dict]) -> tuple[str, list[Trace]]:
    """Decodes every lane to its end. Returns the prompt and the traces. Refusal with one sentence."""
    prompt = options.prompt if options.prompt is not None else read_text(options.prompt_file)
    if not prompt:
        raise Refusal("the prompt is empty; type at least one character.")

    from decoders.lane import Lane, Limits
    from explorer.runs.lane_factory import CALLBACKS, check_tests

    for lane in lanes:
        check_tests(registry.get(lane["strategy"]), lane["parameters"], prompt)
    needs = {role for lane in lanes for role in registry.get(lane["strategy"]).needs}
    models = load_models(options.model, options.draft, tuple(needs), options.device, options.heads)
    ids, limits = models["target"].encode(prompt), Limits(max_new_tokens=options.max_new_tokens)
    return prompt, [
        Lane(one["strategy"], ids, models, one["parameters"], one["seed"], limits, callbacks=CALLBACKS).run()
        for one in lanes
    ]


def save(out: Path, prompt: str, options: argparse.Namespace, traces: list[Trace]) -> None:
    """Writes a page, a run or, for a single lane, a trace, depending on the suffix of `out`."""
    from explorer.export.replay_page import replay_html
    from explorer.export.run_file import container, pack, settings

    setup = {**settings(traces), "prompt": prompt, "max_new_tokens": options.max_new_tokens}
    if out.name.endswith(PAGES):
        files.write(out, replay_html(traces, setup))
    elif len(traces) == 1:
        traces[0].save(out)
    else:
        files.write(out, pack(container(traces, setup), compressed=out.suffix == ".gz"))


def save_extract(trace: Trace, options: argparse.Namespace) -> None:
    """Writes a figure, a graph or the drafted tokens of a trace. Raises Refusal with one sentence."""
    from visualizers import figures, graphs
    from visualizers.analysis.drafted_tokens import drafted_csv

    if options.out is None:
        raise Refusal(
            "--figure, --graph and --drafted-tokens write a file; name it with --out, such as beams.html."
        )
    if options.drafted_tokens:
        files.write(options.out, drafted_csv(trace))
    elif options.figure:
        figures.save(trace.figure(options.figure), options.out)
    else:
        graphs.save(trace.graph(options.graph), options.out)


def print_result(prompt: str, trace: Trace) -> None:
    """Prints the text, or all texts if several were requested, the costs, and why the lane ended."""
    texts, prompt = sequences(trace), before_text(prompt, trace)
    if len(texts) == 1:
        print(prompt + trace.text())
    else:
        for rank, sequence in enumerate(texts, 1):
            score = "" if sequence["score"] is None else f" ({sequence['score']:.4f})"
            print(f"{rank}.{score} {prompt}{sequence['text']}")
    print("\n" + " · ".join(f"{entry['label']} {entry['name']}" for entry in strip(trace.costs)))
    print(trace.ended)


def split_setting(setting: str) -> tuple[str, str]:
    """Splits "num_beams=4" into ("num_beams", "4"). Raises Refusal with one sentence."""
    key, equals, value = setting.partition("=")
    if not equals or not key:
        raise Refusal(f"--set takes KEY=VALUE, not {setting!r}; for example --set num_beams=4.")
    return key.strip(), value.strip()


def bench(options: argparse.Namespace) -> None:
    """Measures and prints the speed figures."""
    from explorer.benchmarks import generate_speed

    workers = nullcontext()
    if options.ray is not None:
        workers = spread.cluster(options.ray, options.model, options.draft)
    with workers:
        generate_speed.run(options)


def convert_heads(options: argparse.Namespace) -> None:
    """Converts the pickles in a folder to safetensors and prints the new paths. Raises Refusal with one
    sentence if a pickle contains anything but tensors, or if there are none.
    """
    from decoders.models.published.tensors import convert

    if not (made := convert(options.folder)):
        raise Refusal(f"the folder {str(options.folder)!r} contains no PyTorch pickles.")
    for path in made:
        print(path)


def site(options: argparse.Namespace) -> None:
    """Writes the app as static pages. Raises Refusal with one sentence."""
    from explorer.site.build import command  # on demand: imports gradio

    command(options)


COMMANDS = {
    "convert-heads": convert_heads,
    "strategies": list_strategies,
    "papers": list_papers,
    "models": shipped.list_models,
    "train": shipped.train,
    "measure": shipped.measure,
    "run": run,
    "compare": compare,
    "experiment": experiments.command,
    "lens": lens_command.command,
    "acceptance": acceptance.command,
    "bench": bench,
    "site": site,
}
