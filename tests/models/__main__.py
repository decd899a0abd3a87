"""`python -m tests.models --all`: decodes with a toy model of every causal architecture of transformers,
compares with `generate`, and prints a table. `--write` writes it to docs/models.md.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Iterator

import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from tests.models import table
from tests.models.check import Row, checked

SECONDS = 120  # that one architecture may take


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("architectures", nargs="*", help="model_type of some architectures")
    parser.add_argument("--all", action="store_true", help="all that AutoModelForCausalLM knows")
    parser.add_argument("--write", action="store_true", help=f"write their rows to {table.PAGE}")
    given = parser.parse_args()
    names = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) if given.all else given.architectures
    if not names:
        parser.error("name architectures, or choose --all")
    rows = []
    for row in each(names):
        print(table.line(row), end="", flush=True)
        rows.append(row)
    if given.write:
        table.write(rows)


def each(names: list[str]) -> Iterator[Row]:
    """The row of each architecture, found in a process of its own with a time limit."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")  # all is imported once
    for name in names:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=lambda name=name, to=theirs: to.send(checked(name)))
        process.start()
        theirs.close()
        try:
            yield ours.recv() if ours.poll(SECONDS) else Row(name, why=f"takes more than {SECONDS} seconds")
        except EOFError:
            yield Row(name, why="fails, see above")
        process.kill()
        process.join()


if __name__ == "__main__":
    sys.exit(main())
