"""The commands and options of the command line."""

import argparse
import os
from pathlib import Path

from decoders.limits import MEMORY_VARIABLE
from decoders.models import address
from decoders.models.catalog import DEVICE_HELP, DEVICES, DRAFT, TARGET
from explorer import shipped
from explorer.acceptance import command as acceptance
from explorer.cluster import LOCAL

Commands = argparse._SubParsersAction  # argparse has no public name for it
TARGET_HELP = f"the target model (default: {TARGET})"
DRAFT_HELP = f"the draft model (default: {DRAFT})"


class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line, without the usage text."""

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}\n")


def parser(prog: str = "python -m explorer") -> Parser:
    """Returns the parser of the whole command line; `prog` is what was typed to start it."""
    top = Parser(prog=prog, description="See how a language model decodes.")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    listing = commands.add_parser("strategies", help="list the decoding strategies with their parameters")
    listing.add_argument("--json", action="store_true", help="print one JSON list")
    strategies_option(listing)

    covered = commands.add_parser("papers", help="list all papers and how far each is covered")
    covered.add_argument("--json", action="store_true", help="print one JSON list")
    covered.add_argument(
        "--graph",
        type=Path,
        metavar="FILE",
        help="write the map of papers, strategies, parts and experiments: .graphml, .gexf, .dot or .json",
    )

    run = commands.add_parser("run", help="decode one prompt with one strategy")
    decoding_options(run)
    run.add_argument("--figure", metavar="VIEW", help="write a figure to --out: beam_tree, entropy ...")
    wide = "with --figure: a figure for print of this width (84: one column), its caption beside it as .txt"
    run.add_argument("--width-mm", type=float, metavar="MM", help=wide)
    run.add_argument("--graph", metavar="KIND", help="write a graph to --out: tokens, drafts, lattice ...")
    rows = "write one row per drafted token to --out, as CSV"
    run.add_argument("--drafted-tokens", action="store_true", help=rows)
    stops = "stop at the first step where this holds: 'entropy > 4', 'the lead changes' ... (can be repeated)"
    run.add_argument("--stop-when", action="append", default=[], metavar="CONDITION", help=stops)
    compare = commands.add_parser("compare", help="decode one prompt with several strategies, side by side")
    decoding_options(compare)
    compare.set_defaults(stop_when=[])

    models = commands.add_parser(
        "models", help="list the models that come with the project, with their facts, or estimate memory"
    )
    takes = "print the memory that this model needs and the packages that it lacks, without loading it"
    models.add_argument("names", nargs="*", metavar="MODEL", help=takes)
    models.add_argument("--dtype", default="auto", help="of MODEL: auto, float32, bfloat16, float16")
    models.add_argument("--device", default="auto", help="of MODEL: auto, cpu or cuda")
    models.add_argument("--json", action="store_true", help="print one JSON list")

    convert = commands.add_parser(
        "convert-heads",
        help="convert published draft heads from PyTorch pickles to safetensors files beside them",
    )
    convert.add_argument("folder", type=Path, metavar="FOLDER", help="the folder with the heads")
    train_command(commands)
    measure = commands.add_parser(
        "measure", help="evaluate the shipped models on held-out texts and write their cards"
    )
    measure.add_argument("names", nargs="*", metavar="NAME", help="a shipped model (default: all)")
    measure.add_argument(
        "--corpus", type=Path, required=True, metavar="FOLDER", help="a folder that contains stories/*.txt"
    )

    experiment_command(commands)
    lens_command(commands)
    acceptance.options_of(commands)
    doctor_command(commands)
    twin_command(commands)
    open_options(commands)
    bench_command(commands)
    site_command(commands)
    return top


def train_command(commands: Commands) -> None:
    """Adds `train`."""
    train = commands.add_parser(
        "train",
        help="train one of the shipped models, or a head for your own; continues an interrupted training",
    )
    train.add_argument(
        "recipe",
        metavar="RECIPE",
        help=f"name of the model, for example llama-tiny-draft, or of a head: {', '.join(shipped.OWN_HEADS)}",
    )
    train.add_argument(
        "--corpus", type=Path, metavar="FOLDER", help="for a model: a folder that contains stories/*.txt"
    )
    train.add_argument("--model", metavar="M", help="for a head: its target model, a folder or Hub id")
    train.add_argument("--draft", metavar="M", help="for a head that needs one: the draft model")
    train.add_argument(
        "--texts", type=Path, metavar="PATH", help="for a head: a text file or a folder of them"
    )
    train.add_argument("--out", type=Path, metavar="FOLDER", help="for a head: the folder to write it to")
    train.add_argument(
        "--work",
        type=Path,
        default=Path("training"),
        metavar="FOLDER",
        help="folder for the tokenizer and checkpoints, which are not shipped (default: training)",
    )
    train.add_argument(
        "--million-tokens",
        type=float,
        metavar="X",
        help="training tokens per stage, in millions (default: the recipe's)",
    )
    train.add_argument(
        "--divergence",
        metavar="NAME",
        help="the loss that llama-tiny-draft-distilled minimises: forward KL (default), reverse KL, JSD 0.5, "
        "JSD 0.1, JSD 0.9 or TVD",
    )
    train.add_argument(
        "--on-policy", action="store_true", help="train llama-tiny-draft-distilled on its own samples"
    )


def experiment_command(commands: Commands) -> None:
    """Adds `experiment`."""
    experiment = commands.add_parser("experiment", help="run a repeatable experiment and print its table")
    experiment.add_argument("name", nargs="?", metavar="NAME", help="without it, list all experiments")
    experiment.add_argument("--json", action="store_true", help="print one JSON object")
    experiment.add_argument("--store", action="store_true", help="store the answer for the page")
    experiment.add_argument(
        "--add", action="store_true", help="run only the rows that the stored answer lacks"
    )
    experiment.add_argument(
        "--corpus",
        type=Path,
        metavar="FOLDER",
        help="for experiments that need it: a folder that contains stories/*.txt",
    )
    schemas = "for the experiment that needs it: a copy of the JSONSchemaBench repository"
    experiment.add_argument("--schemas", type=Path, metavar="FOLDER", help=schemas)
    spread = "run on the Ray cluster at HOST:PORT; without an address, on all cores of this machine"
    experiment.add_argument("--ray", nargs="?", const=LOCAL, metavar="ADDRESS", help=spread)
    experiment.add_argument("--model", default=TARGET, metavar="M", help=TARGET_HELP)
    engine_option(experiment)
    experiment.add_argument("--draft", default=DRAFT, metavar="M", help=DRAFT_HELP)
    code_option(experiment)


def lens_command(commands: Commands) -> None:
    """Adds `lens`."""
    lens = commands.add_parser("lens", help="look inside a model while it reads a text")
    lens.add_argument("name", nargs="?", metavar="NAME", help="without it, list all lenses")
    lens.add_argument("--prompt", metavar="TEXT", help="the text to read")
    lens.add_argument("--prompt-file", type=Path, metavar="FILE", help="a file with the text to read")
    lens.add_argument("--model", default=TARGET, metavar="M", help=TARGET_HELP)
    device_option(lens)
    options = "an option of the lens (can be repeated)"
    lens.add_argument(
        "--set", action="append", default=[], dest="settings", metavar="KEY=VALUE", help=options
    )
    lens.add_argument("--figure", metavar="NAME", help="the figure to write to --out (default: the first)")
    lens.add_argument("--out", type=Path, metavar="FILE", help="write a figure: .html, .png, .svg or .pdf")
    lens.add_argument("--json", action="store_true", help="print all results as one JSON object")
    routes = "for the lens flow: write the route of the last prediction, .graphml, .gexf, .dot or .json"
    lens.add_argument("--graph", type=Path, metavar="FILE", help=routes)


def doctor_command(commands: Commands) -> None:
    """Adds `doctor`."""
    doctor = commands.add_parser("doctor", help="say what is wrong with a draft, with tokens that show it")
    doctor.add_argument("--target", "--model", default=TARGET, metavar="M", help="the draft's target")
    drafts = (
        f"a draft model, or a strategy that drafts with heads, such as eagle (default: {DRAFT}; with "
        "--recorded: none, and the recording is judged by itself)"
    )
    doctor.add_argument("--draft", metavar="D", help=drafts)
    doctor.add_argument("--heads", action="append", default=[], metavar="FOLDER", help="heads of the target")
    recorded = (
        "what an engine recorded: a folder or file of traces, log lines, metrics, an address, or - ; with "
        "--draft, its numbers are compared with that draft's"
    )
    doctor.add_argument("--recorded", metavar="SOURCE", help=recorded)
    server = "send the canaries to a server that drafts, and read its counts: http://host:port/v1#name"
    doctor.add_argument("--server", metavar="ADDRESS", help=server)
    prompts = "prompts that the target continues (.txt, .jsonl), instead of the doctor's own three"
    doctor.add_argument("--prompts", type=Path, metavar="FILE", help=prompts)
    lengths = "your draft length, which is compared with the best one"
    doctor.add_argument("--num-assistant-tokens", type=int, metavar="K", help=lengths)
    golden = "reference acceptance to compare with, as `acceptance --golden` writes it; may end in ,mode=NAME"
    doctor.add_argument("--golden", metavar="FILE.yaml", help=golden)
    doctor.add_argument("--out", type=Path, metavar="FILE", help="write a page (.html) or .json")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    device_option(doctor)


def twin_command(commands: Commands) -> None:
    """Adds `twin`."""
    twin = commands.add_parser("twin", help="score the same text with two engines and explain differences")
    twin.add_argument(
        "--text", required=True, metavar="FILE", help="a recording (.json, .jsonl), or a text in UTF-8"
    )
    engines = (
        "a model, a server's address, or a file of recorded log-probabilities; give it twice. Options follow "
        "after commas: dtype=bfloat16, device=cuda, tokens_per_forward=1, record=2"
    )
    twin.add_argument("--engine", action="append", dest="engines", required=True, metavar="E", help=engines)
    twin.add_argument("--out", type=Path, metavar="FILE", help="write a page (.html), .csv or .json")
    twin.add_argument("--json", action="store_true", help="print one JSON object")
    device_option(twin)


def bench_command(commands: Commands) -> None:
    """Adds `bench`."""
    bench = commands.add_parser("bench", help="measure speed, each figure as a ratio within one run")
    bench.add_argument("--json", action="store_true", help="print one JSON object")
    keep = "store the figures of the shipped pair in docs/measured.json, and write the tables of docs/"
    bench.add_argument("--store", action="store_true", help=keep)
    parts = (
        "measure one part: decoding, lanes, page, plotly, start, visitors, soak, big, open or vocabulary "
        "(can be repeated)"
    )
    bench.add_argument("--only", action="append", metavar="NAME", help=parts)
    bench.add_argument(
        "--family",
        metavar="NAME",
        help="measure one family: speculative, search, diffusion, heads or constraints",
    )
    busy = "for the family heads: measure the process's CPU time instead of wall-clock time, each prompt once"
    bench.add_argument("--busy", action="store_true", help=busy)
    alone = "measure one device: greedy, beams, drafts, trees and bandwidth, with and without CUDA graphs"
    machines = "measure on the machines of the Ray cluster at HOST:PORT, one part at a time on each"
    bench.add_argument("--ray", nargs="?", const=LOCAL, metavar="ADDRESS", help=machines)
    bench.add_argument("--device", choices=("cpu", "cuda"), help=alone)
    quick = "with --device: laws, tables and the app in at most ten minutes, the most important first"
    bench.add_argument("--quick", action="store_true", help=quick)
    bench.add_argument("--model", default=TARGET, metavar="M", help=TARGET_HELP)
    bench.add_argument("--draft", default=DRAFT, metavar="M", help=DRAFT_HELP)


def site_command(commands: Commands) -> None:
    """Adds `site`."""
    site = commands.add_parser(
        "site", help="write the replays, lessons, experiments and papers as static pages for any web host"
    )
    site.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new or empty folder")
    address = (
        "for link previews: where the pages will be served, for example https://me.example.org/explorer/"
    )
    site.add_argument("--address", metavar="URL", help=address)


class InOrder(argparse.Action):
    """Collects (option, value) pairs in their order: a --set belongs to the --strategy before it."""

    def __call__(self, parser, namespace, value, option_string=None) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), (self.metavar, value)])


def engine_option(command: argparse.ArgumentParser) -> None:
    """Adds `--engine`."""
    command.add_argument(
        "--engine", default=address.ENGINES[0], choices=address.ENGINES, help=address.ENGINE_HELP
    )


class KvMemory(argparse.Action):
    """Hands a size on to every engine of this process and of those that it starts."""

    def __call__(self, parser, namespace, value, option_string=None) -> None:
        if not 0.0 < value < 1e6:
            parser.error(f"--kv-memory must be a number of gigabytes, such as 8, not {value:g}.")
        os.environ[MEMORY_VARIABLE] = str(value)


def device_option(command: argparse.ArgumentParser) -> None:
    """Adds `--device`."""
    command.add_argument("--device", default="auto", choices=DEVICES, help=DEVICE_HELP)


def kv_option(command: argparse.ArgumentParser) -> None:
    """Adds `--kv-memory`."""
    command.add_argument(
        "--kv-memory",
        action=KvMemory,
        type=float,
        metavar="GB",
        help="memory for the keys and values of each model (default: a quarter of what is free when it is "
        "loaded)",
    )


def code_option(command: argparse.ArgumentParser) -> None:
    """Adds `--run-code`."""
    command.add_argument(
        "--run-code",
        action="store_true",
        help="run programs written by a model even if this system cannot sandbox them",
    )


def strategies_option(command: argparse.ArgumentParser) -> None:
    """Adds `--strategies`."""
    command.add_argument(
        "--strategies",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a Python file that declares strategies of your own (can be repeated)",
    )


def decoding_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of `run` and `compare`."""
    command.add_argument(
        "--strategy",
        dest="lanes",
        action=InOrder,
        required=True,
        metavar="NAME",
        help="the decoding strategy; for compare, one per lane",
    )
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="the text to continue")
    prompt.add_argument("--prompt-file", metavar="F", type=Path, help="a file with the text to continue")
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
        help=f"draft model, for strategies that need one (default: {DRAFT}); for SpecInfer up to four, "
        "separated by commas",
    )
    command.add_argument(
        "--heads",
        action="append",
        default=[],
        metavar="FOLDER",
        help="trained heads for these models, see train (can be repeated)",
    )
    command.add_argument(
        "--set",
        dest="lanes",
        action=InOrder,
        metavar="KEY=VALUE",
        help="a parameter of the --strategy before it (can be repeated)",
    )
    most = "the maximum number of new tokens (default: 64)"
    command.add_argument("--max-new-tokens", type=int, default=64, metavar="N", help=most)
    command.add_argument("--seed", type=int, default=0, metavar="S", help="seed of every lane (default: 0)")
    device_option(command)
    kv_option(command)
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="save the run: .html is a page that replays it offline, .json or .json.gz is the data",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    code_option(command)
    strategies_option(command)


def open_options(commands: Commands) -> None:
    """Adds `open`."""
    command = commands.add_parser(
        "open",
        help="read and check files of other engines, trainers and evaluations: answers, records, counts",
    )
    command.add_argument(
        "source", metavar="SOURCE", help="a file, a folder, an http(s) address, or - for standard input"
    )
    command.add_argument("--record", type=int, metavar="N", help="which record of the file to open")
    command.add_argument("--out", type=Path, metavar="FILE", help="write a page (.html) or a trace (.json)")
    command.add_argument("--json", action="store_true", help="print one JSON object")
