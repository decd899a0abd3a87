"""Measures what the command line costs: each command in a process of its own, a run in turn with a script
that imports torch and transformers and loads the same model.
"""

import argparse
import os
import statistics
import subprocess
import sys

from decoders import packages
from decoders.models.names import place, resolve
from explorer.timing import figure

REPEATS = 5
LOAD = """
import sys
import torch, transformers
transformers.AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=False)
transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], trust_remote_code=False)
"""
RUN = ("run", "--prompt", "Once", "--max-new-tokens", "4", "--device", "cpu")
QUICK = {  # what is answered at once -> the command
    "answering --help": ("--help",),
    "refusing an unknown strategy": (*RUN, "--strategy", "nonsense"),
    "refusing an unknown model": (*RUN, "--strategy", "greedy", "--model", "nonsense"),
    "refusing an unknown parameter": (*RUN, "--strategy", "greedy", "--set", "nonsense=1"),
}


def starts(options: argparse.Namespace) -> list[dict]:
    """CPU time of a greedy run, against that of loading its model alone; and of answers that need no
    model.
    """
    explorer, model = ("-m", packages.full("explorer")), options.model
    greedy = (*explorer, *RUN, "--strategy", "greedy", "--model", model)
    load = ("-c", LOAD, place(resolve(model))[0])
    seconds(*load)  # fills the disk cache
    ratios = [seconds(*greedy) / seconds(*load) for _ in range(REPEATS)]
    name = "CPU time of a greedy run of 4 tokens, against loading its model"
    rows = [figure(name, statistics.median(ratios), "×", 1.3, at_least=False)]
    for what, command in QUICK.items():
        taken = statistics.median(seconds(*explorer, *command) for _ in range(REPEATS))
        rows.append(figure(f"CPU time of {what}", taken, "s", 0.3, at_least=False))
    return rows


def seconds(*arguments: str) -> float:
    """CPU time of Python with these arguments."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], cwd=packages.ROOT, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
