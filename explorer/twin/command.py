"""`python -m explorer twin`: the same text scored by two engines; prints what explains their differences, and
writes a page or a table.
"""

import argparse
import json

from decoders import files
from decoders.refusal import Refusal

WRITES = (".html", ".csv", ".json")


def command(options: argparse.Namespace) -> None:
    """Compares two engines, and writes or prints what was found. Raises Refusal with one sentence."""
    if len(options.engines) != 2:
        raise Refusal(f"twin compares two engines: give --engine twice, not {len(options.engines)} times.")
    if options.out is not None and options.out.suffix not in WRITES:
        raise Refusal(f"--out writes {', '.join(WRITES)}; {options.out.name} ends in none of them.")

    from transformers.utils import logging

    from explorer.experiments.progress_line import shown as progress_shown
    from explorer.twin.comparing import compared
    from explorer.twin.report_page import report_page
    from explorer.twin.sides import sides, text_in
    from explorer.twin.words import as_json, summary, table

    logging.disable_progress_bar()
    a, b = sides(*options.engines, options.device)
    with progress_shown("twin"):
        found = compared(text_in(options.text), a, b)
    if options.out is not None:
        written = {
            ".html": lambda: report_page(found, command_line(options)),
            ".csv": lambda: table(found),
            ".json": lambda: json.dumps(as_json(found)),
        }
        files.write(options.out, written[options.out.suffix]())
    print(json.dumps(as_json(found)) if options.json else summary(found))


def command_line(options: argparse.Namespace) -> str:
    """The command that makes the same page again."""
    engines = " ".join(f"--engine {name}" for name in options.engines)
    return f"python -m explorer twin --text {options.text} {engines}"
