"""The commands of `python -m explorer`. Strategies are known by their declarations, never by name.

The exit status is 0 on success and 2 on unusable arguments, with one line that says what to do.
"""

import argparse
import gc
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType

from decoders import files, packages, registry
from decoders.models import address
from decoders.refusal import Refusal
from explorer import run_request
from explorer.cli_options import parser

Command = Callable[[argparse.Namespace], None]


def main(arguments: list[str] | None = None, prog: str = "python -m explorer") -> None:
    """Runs one command; a user's mistake ends it with exit status 2 and one line, begun with `prog`."""
    top = parser(prog)
    options = top.parse_args(arguments)
    command = COMMANDS[options.command]
    if getattr(options, "run_code", False):
        from explorer.tasks import sandbox

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
    declared = registry.declarations()
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
    from explorer.catalog import origins, papers

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
    """Decodes one prompt with one strategy. Raises Refusal with one sentence."""
    prompt, lanes = run_request.checked(options)
    if len(lanes) != 1:
        raise Refusal("run takes one --strategy; use compare to see several side by side.")
    run_commands().run(options, prompt, lanes)


def compare(options: argparse.Namespace) -> None:
    """Decodes one prompt with several strategies. Raises Refusal with one sentence."""
    prompt, lanes = run_request.checked(options)
    run_commands().compare(options, prompt, lanes)


def run_commands() -> ModuleType:
    """What decodes, imported with torch and transformers."""
    gc.disable()  # imports make many objects that live on; scanning them again and again costs a second
    try:
        from explorer import run_command
    finally:
        gc.enable()
    return run_command


def bench(options: argparse.Namespace) -> None:
    """Measures and prints the speed figures."""
    from explorer.benchmarks import generate_speed
    from explorer.experiments import spread

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


def from_module(module: str, name: str = "command") -> Command:
    """A command that is a function of another module, which is imported when it runs."""
    return lambda options: getattr(packages.module(module), name)(options)


COMMANDS: dict[str, Command] = {
    "convert-heads": convert_heads,
    "strategies": list_strategies,
    "papers": list_papers,
    "models": from_module("explorer.shipped", "list_models"),
    "train": from_module("explorer.shipped", "train"),
    "measure": from_module("explorer.shipped", "measure"),
    "run": run,
    "compare": compare,
    "experiment": from_module("explorer.experiments"),
    "lens": from_module("explorer.lens_command"),
    "open": from_module("explorer.open_command"),
    "acceptance": from_module("explorer.acceptance.command"),
    "doctor": from_module("explorer.doctor.command"),
    "twin": from_module("explorer.twin.command"),
    "bench": bench,
    "site": from_module("explorer.site.build"),
}
