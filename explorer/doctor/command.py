"""`python -m explorer doctor`: what is wrong with a draft, in one sentence with evidence."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from decoders import files
from decoders.models.catalog import DRAFT
from decoders.refusal import Refusal

if TYPE_CHECKING:
    from explorer.doctor.examining import Examination


def command(options: argparse.Namespace) -> None:
    """Examines a draft, and writes or prints what was found. Raises Refusal with one sentence."""
    if options.out is not None and options.out.suffix not in (".html", ".htm", ".json"):
        raise Refusal(f"--out writes .html or .json; {options.out.name} ends in neither.")
    count = options.num_assistant_tokens
    if count is not None and not 1 <= count <= 64:
        raise Refusal(f"--num-assistant-tokens must be from 1 to 64, not {count}.")
    if options.server and options.recorded:
        raise Refusal("Examine a server or a recording, one at a time.")

    from explorer.doctor.report_page import report_page
    from explorer.doctor.words import as_json, summary
    from explorer.experiments.progress_line import shown as progress_shown

    with progress_shown("doctor"):
        found = examined(options)
    if options.golden:
        found = compared(found, options.golden)
    if options.out is not None:
        text = (
            json.dumps(as_json(found)) if options.out.suffix == ".json" else report_page(found, said(options))
        )
        files.write(options.out, text)
    print(json.dumps(as_json(found)) if options.json else summary(found))


def examined(options: argparse.Namespace) -> "Examination":
    """The examination that is asked for. Raises Refusal with one sentence."""
    from explorer.doctor import examining, recorded, served

    if options.server:
        return last(served.in_pieces(options.server))
    if options.recorded and not options.draft:
        return recorded.examine(options.recorded, None, None)

    from explorer.acceptance.drafters import drafter
    from explorer.acceptance.prompts import read_prompts
    from explorer.runs.load_pair import load_models

    target = load_models(options.target, None, ("target",), options.device, options.heads)["target"]
    one = drafter(options.draft or DRAFT, target, options.device)
    if options.recorded:
        return recorded.examine(options.recorded, one, one.models["target"])
    prompts = read_prompts(options.prompts) if options.prompts else []
    settings = examining.Settings(options.num_assistant_tokens)
    return last(examining.in_pieces(target, one, prompts, settings))


def last(pieces: Iterator["tuple[int, int] | Examination"]) -> "Examination":
    """The examination at the end of its pieces, with progress shown."""
    from explorer.experiments import progress

    done, total = 0, 1
    first = next(pieces)
    if not isinstance(first, tuple):
        return first
    _, total = first
    for number in progress.each(range(1, total + 1)):
        while done < number:
            piece = next(pieces)
            if not isinstance(piece, tuple):
                return piece
            done = piece[0]
    for piece in pieces:
        if not isinstance(piece, tuple):
            return piece
    raise AssertionError("an examination ends with what was found")


def compared(found: "Examination", name: str) -> "Examination":
    """The examination with what a reference says of its tokens per round. Raises Refusal with one
    sentence.
    """
    from decoders.models.address import short
    from explorer.acceptance import golden
    from visualizers.analysis.draft_diagnosis import below

    reference = golden.read(name, short(found.target))
    if found.gained is None:
        raise Refusal("There is no round to compare with the reference.")
    if found.drafted not in reference.lengths:
        known = ", ".join(map(str, sorted(reference.lengths)))
        raise Refusal(
            f"The reference knows drafts of {known} tokens, not of {found.drafted}; choose one of them with "
            "--num-assistant-tokens."
        )
    own = found.gained
    less = below(reference.lengths[found.drafted], found.drafted, own.mean, own.low, own.high)
    return replace(found, findings=[*found.findings, *less])


def said(options: argparse.Namespace) -> str:
    """The command that makes the same page again."""
    if options.server:
        return f"python -m explorer doctor --server {options.server}"
    parts = [f"python -m explorer doctor --target {options.target}", f"--draft {options.draft or DRAFT}"]
    parts += [f"--heads {folder}" for folder in options.heads]
    if options.recorded:
        parts.append(f"--recorded {options.recorded}")
    if options.num_assistant_tokens:
        parts.append(f"--num-assistant-tokens {options.num_assistant_tokens}")
    return " ".join(parts)
