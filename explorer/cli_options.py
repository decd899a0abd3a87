"""The commands of the command line with their options. Knows no strategy by name and runs nothing."""

import argparse
from pathlib import Path

from decoders.models import address
from decoders.models.catalog import DRAFT, TARGET
from explorer import shipped
from explorer.acceptance import command as acceptance
from explorer.experiments.spread import LOCAL


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage text."""

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}\n")


def parser() -> Parser:
    """The whole command line."""
    top = Parser(prog="python -m explorer", description="See how a language model decodes.")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    listing = commands.add_parser("strategies", help="list the decoding strategies with their parameters")
    listing.add_argument("--json", action="store_true", help="as one JSON list")
    strategies_option(listing)

    covered = commands.add_parser("papers", help="list all papers and how far each one is covered")
    covered.add_argument("--json", action="store_true", help="as one JSON list")
    covered.add_argument(
        "--graph",
        type=Path,
        metavar="FILE",
        help="write the map of papers, strategies, parts and experiments: .graphml, .gexf, .dot or .json",
    )

    run = commands.add_parser("run", help="decode one prompt with one strategy")
    decoding_options(run)
    run.add_argument("--figure", metavar="VIEW", help="write a figure to --out: beam_tree, entropy ...")
    run.add_argument("--graph", metavar="KIND", help="write a graph to --out: tokens, drafts, lattice ...")
    rows = "write one row per drafted token to --out, as CSV"
    run.add_argument("--drafted-tokens", action="store_true", help=rows)
    compare = commands.add_parser("compare", help="decode one prompt with several strategies, side by side")
    decoding_options(compare)

    models = commands.add_parser("models", help="list the models that come with the project and their facts")
    models.add_argument("--json", action="store_true", help="as one JSON list")

    convert = commands.add_parser(
        "convert-heads",
        help="write published draft heads that are PyTorch pickles as safetensors beside them",
    )
    convert.add_argument("folder", type=Path, metavar="FOLDER")
    train = commands.add_parser(
        "train",
        help="train one of these models, or a head for your own; continues where it was interrupted",
    )
    train.add_argument(
        "recipe",
        metavar="RECIPE",
        help=f"name of the model, for example llama-tiny-draft; or a head: {', '.join(shipped.OWN_HEADS)}",
    )
    train.add_argument("--corpus", type=Path, metavar="FOLDER", help="with stories/*.txt, for a model")
    train.add_argument("--model", metavar="M", help="the target that a head is for: a folder or Hub id")
    train.add_argument("--draft", metavar="M", help="the draft model before it, where the head needs one")
    train.add_argument(
        "--texts", type=Path, metavar="PATH", help="a text file or a folder of them, for a head"
    )
    train.add_argument("--out", type=Path, metavar="FOLDER", help="where a head is written")
    train.add_argument(
        "--work",
        type=Path,
        default=Path("training"),
        metavar="FOLDER",
        help="for tokenizer and checkpoints, which are not shipped (default: training)",
    )
    train.add_argument(
        "--million-tokens", type=float, metavar="X", help="budget of each stage (default: the recipe's)"
    )

    train.add_argument(
        "--divergence",
        metavar="NAME",
        help="what llama-tiny-draft-distilled makes small: forward KL (default), reverse KL, JSD 0.5, "
        "JSD 0.1, JSD 0.9 or TVD",
    )
    train.add_argument(
        "--on-policy", action="store_true", help="llama-tiny-draft-distilled learns on its own texts"
    )

    measure = commands.add_parser("measure", help="measure these models on held-out texts; write their cards")
    measure.add_argument("names", nargs="*", metavar="NAME", help="of a shipped model (default: all)")
    measure.add_argument("--corpus", type=Path, required=True, metavar="FOLDER", help="with stories/*.txt")

    experiment = commands.add_parser("experiment", help="ask one question of the models: a table, repeatable")
    experiment.add_argument("name", nargs="?", metavar="NAME", help="without one they are listed")
    experiment.add_argument("--json", action="store_true", help="as one JSON object")
    experiment.add_argument("--store", action="store_true", help="keep the answer for the page")
    experiment.add_argument("--add", action="store_true", help="only the rows that the stored answer lacks")
    experiment.add_argument("--corpus", type=Path, metavar="FOLDER", help="for those that read stories/*.txt")
    schemas = "a copy of the repository of JSONSchemaBench, for the experiment that reads it"
    experiment.add_argument("--schemas", type=Path, metavar="FOLDER", help=schemas)
    spread = "spread it over the Ray cluster at HOST:PORT; without an address, over this machine's cores"
    experiment.add_argument("--ray", nargs="?", const=LOCAL, metavar="ADDRESS", help=spread)
    experiment.add_argument("--model", default=TARGET, metavar="M")
    engine_option(experiment)
    experiment.add_argument("--draft", default=DRAFT, metavar="M")
    code_option(experiment)

    lens = commands.add_parser("lens", help="look inside a model while it reads a text; counted in no lane")
    lens.add_argument("name", nargs="?", metavar="NAME", help="without one they are listed")
    lens.add_argument("--prompt", metavar="TEXT", help="what is read")
    lens.add_argument("--prompt-file", type=Path, metavar="FILE")
    lens.add_argument("--model", default=TARGET, metavar="M")
    lens.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    lens.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    lens.add_argument("--figure", metavar="NAME", help="which figure --out gets (default: the first)")
    lens.add_argument("--out", type=Path, metavar="FILE", help="the figure: .html, .png, .svg or .pdf")
    lens.add_argument("--json", action="store_true", help="all that it saw, as one JSON object")
    routes = "the route of the last prediction, of the lens flow: .graphml, .gexf, .dot or .json"
    lens.add_argument("--graph", type=Path, metavar="FILE", help=routes)

    acceptance.options_of(commands)

    bench = commands.add_parser("bench", help="measure the speed figures, each as a ratio in one run")
    bench.add_argument("--json", action="store_true", help="as one JSON object")
    parts = "one part of it: decoding, lanes, page, plotly, start, visitors, soak or big"
    bench.add_argument("--only", action="append", metavar="NAME", help=parts)
    bench.add_argument(
        "--family", metavar="NAME", help="of one family: speculative, search, diffusion, heads, constraints"
    )
    busy = "of the family heads: count the process's own computing time, each prompt once, not the clock's"
    bench.add_argument("--busy", action="store_true", help=busy)
    alone = "one device instead: greedy, beams, drafts, trees and bandwidth, as loaded and captured"
    machines = "measure its parts on the machines of the Ray cluster at HOST:PORT, one at a time on each"
    bench.add_argument("--ray", nargs="?", const=LOCAL, metavar="ADDRESS", help=machines)
    bench.add_argument("--device", choices=("cpu", "cuda"), help=alone)
    bench.add_argument("--model", default=TARGET, metavar="M")
    bench.add_argument("--draft", default=DRAFT, metavar="M")
    return top


class InOrder(argparse.Action):
    """Gathers (option, value) pairs as they come: a --set belongs to the --strategy before it."""

    def __call__(self, parser, namespace, value, option_string=None) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), (self.metavar, value)])


def engine_option(command: argparse.ArgumentParser) -> None:
    """`--engine`."""
    command.add_argument(
        "--engine", default=address.ENGINES[0], choices=address.ENGINES, help=address.ENGINE_HELP
    )


def code_option(command: argparse.ArgumentParser) -> None:
    """`--run-code`."""
    command.add_argument(
        "--run-code",
        action="store_true",
        help="run programs that a model writes even where the system cannot wall them in",
    )


def strategies_option(command: argparse.ArgumentParser) -> None:
    """`--strategies`."""
    command.add_argument(
        "--strategies",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a Python file that declares strategies of your own; may be given several times",
    )


def decoding_options(command: argparse.ArgumentParser) -> None:
    """The options of `run` and `compare`."""
    command.add_argument(
        "--strategy",
        dest="lanes",
        action=InOrder,
        required=True,
        metavar="NAME",
        help="how to decode; one for each lane",
    )
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT")
    prompt.add_argument("--prompt-file", metavar="F", type=Path)
    command.add_argument(
        "--model",
        default=TARGET,
        metavar="M",
        help="shipped name, folder, Hub id[@revision], or http://host:port/v1#name",
    )
    engine_option(command)
    command.add_argument(
        "--draft",
        metavar="M",
        help=f"for strategies that need one (default: {DRAFT}); up to four names with commas for SpecInfer",
    )
    command.add_argument(
        "--heads",
        action="append",
        default=[],
        metavar="FOLDER",
        help="trained heads for these models (see train); may be given several times",
    )
    command.add_argument(
        "--set",
        dest="lanes",
        action=InOrder,
        metavar="KEY=VALUE",
        help="a parameter of the strategy before it",
    )
    command.add_argument("--max-new-tokens", type=int, default=64, metavar="N")
    command.add_argument("--seed", type=int, default=0, metavar="S")
    command.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="save it: .html is a page that replays it from disk, .json or .json.gz the data",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    code_option(command)
    strategies_option(command)
