"""`python -m explorer acceptance`: why the drafted tokens of one or several drafters are rejected, over a
file of prompts; writes a page, JSON or a summary.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from decoders import files
from decoders.models.catalog import DEVICE_HELP, DEVICES, DRAFT, TARGET
from decoders.models.named_heads import check_heads_used
from decoders.refusal import Refusal
from explorer.acceptance.prompts import read_prompts

DRAFTS = 4  # maximum number of drafters in a report


def options_of(commands: argparse._SubParsersAction) -> None:
    """Declares the command and its options."""
    command = commands.add_parser(
        "acceptance", help="report why drafted tokens are rejected, over many prompts"
    )
    command.add_argument(
        "--target", "--model", default=TARGET, metavar="M", help="shipped name, folder or Hub id[@revision]"
    )
    command.add_argument(
        "--draft",
        action="append",
        metavar="D",
        help=f"a draft model, or a strategy that drafts by itself, such as kangaroo (default: "
        f"{DRAFT}; can be repeated, up to {DRAFTS} times)",
    )
    command.add_argument(
        "--heads",
        action="append",
        default=[],
        metavar="FOLDER",
        help="trained heads for the target, which strategies then use (can be repeated)",
    )
    given = command.add_mutually_exclusive_group(required=True)
    given.add_argument("--prompts", type=Path, metavar="FILE", help=".txt, one prompt per line, or .jsonl")
    given.add_argument(
        "--traces", type=Path, metavar="FOLDER", help="report on recorded traces instead of decoding"
    )
    command.add_argument("--out", type=Path, metavar="FILE.html", help="write the report as a page")
    command.add_argument(
        "--golden",
        type=Path,
        metavar="FILE.yaml",
        help="write a reference instead of a report: tokens per round with 1 to K drafted tokens (K: 8)",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    most = "the maximum number of new tokens per prompt (default: 64)"
    command.add_argument("--max-new-tokens", type=int, default=64, metavar="N", help=most)
    command.add_argument(
        "--num-assistant-tokens",
        type=int,
        metavar="K",
        help="every drafter drafts a chain of K tokens per round, as vLLM runs heads (default: each drafter "
        "drafts in its own way, such as the tree of its paper)",
    )
    command.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 is greedy decoding (default: 0)"
    )
    command.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the draws (default: 0)")
    command.add_argument("--device", default="auto", choices=DEVICES, help=DEVICE_HELP)


def command(options: argparse.Namespace) -> None:
    """Measures acceptance, and writes or prints the report. Raises Refusal with one sentence."""
    if options.out is not None and options.out.suffix not in (".html", ".htm"):
        raise Refusal(f"--out writes a page; {options.out.name} does not end in .html.")
    if options.golden is not None and (options.traces or options.out or len(options.draft or [DRAFT]) > 1):
        raise Refusal("--golden decodes prompts with one drafter and writes no page; leave the rest out.")
    if options.traces is not None:
        from explorer.acceptance.recorded import report as of_traces

        said = f"python -m explorer acceptance --traces {options.traces.name}"
        give(of_traces(options.traces), said, options)
        return
    prompts, names = read_prompts(options.prompts), options.draft or [DRAFT]
    if len(names) > DRAFTS:
        raise Refusal(f"a report compares at most {DRAFTS} drafters, not {len(names)}.")
    if options.num_assistant_tokens is not None and options.num_assistant_tokens < 1:
        raise Refusal(f"--num-assistant-tokens must be at least 1, not {options.num_assistant_tokens}.")
    if not 0.0 <= options.temperature <= 100.0:
        raise Refusal(f"--temperature must be from 0 to 100, not {options.temperature:g}.")

    from explorer.acceptance.drafters import drafter
    from explorer.acceptance.measuring import Settings, report
    from explorer.experiments.progress_line import shown as progress_shown
    from explorer.runs.load_pair import load_models

    target = load_models(options.target, None, ("target",), options.device, options.heads)["target"]
    drafters = [drafter(name, target, options.device) for name in names]
    settings = Settings(
        options.max_new_tokens, options.num_assistant_tokens, options.temperature, options.seed
    )
    if options.golden is not None:
        write_golden(options, target, drafters[0], prompts, settings)
        return
    with progress_shown("acceptance"):
        result = report(target, drafters, prompts, settings)
    check_heads_used({"target": target})
    give(result, command_line(options, names), options)


def write_golden(options: argparse.Namespace, target: Any, one: Any, prompts: list, settings: Any) -> None:
    """Measures tokens per round for each length of the draft, and writes and prints the reference."""
    from decoders.models.address import short
    from explorer.acceptance.golden import LONGEST, curve, written
    from explorer.experiments.progress_line import shown as progress_shown

    longest = settings.num_assistant_tokens or LONGEST
    with progress_shown("golden"):
        *_, found = curve(target, one, prompts, settings)
    about = (
        f"Mean tokens gained per round by {one.name} for {target.name}, without rounds cut by a text's end.",
        f"{len(prompts)} prompts of {options.prompts.name}, {settings.max_new_tokens} new tokens each, "
        f"temperature {settings.temperature:g}, drafts of 1 to {longest} tokens.",
    )
    text = written(short(target.name), found, about)
    files.write(options.golden, text)
    print(text, end="")


def give(result: dict, said: str, options: argparse.Namespace) -> None:
    """Writes the page if one is asked for, and prints the report. said: the command that makes it again."""
    from explorer.acceptance.words import summary

    if options.out:
        from explorer.acceptance.report_page import report_page

        files.write(options.out, report_page(result, said))
    print(json.dumps(result) if options.json else summary(result))


def command_line(options: argparse.Namespace, names: list[str]) -> str:
    """The command that makes the same page again."""
    drafts = " ".join(f"--draft {name}" for name in names)
    count = options.num_assistant_tokens
    how = f"--max-new-tokens {options.max_new_tokens}"
    how += f" --num-assistant-tokens {count}" if count is not None else ""
    drawn = f" --temperature {options.temperature:g} --seed {options.seed}" if options.temperature else ""
    file = options.prompts.name
    return f"python -m explorer acceptance --target {options.target} {drafts} --prompts {file} {how}{drawn}"
