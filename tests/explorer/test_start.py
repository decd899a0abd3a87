"""What a command imports before it has something to do with a model."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = """
import sys
from explorer.cli import main

for command in sys.argv[1:]:
    print(">", command)
    try:
        main(command.split())
    except SystemExit as ended:
        print("exit", ended.code)
    print("imported", *sorted({"torch", "transformers", "gradio", "plotly"} & set(sys.modules)))
"""
RUN = "run --prompt Once"
ANSWERED = {  # a command -> words of its answer
    "--help": "side by side",
    "models": "llama-tiny-draft",
    "lens": "tau",
    "papers": "193 papers:",
    f"{RUN} --strategy gredy": "There is no strategy 'gredy'; choose one of those listed, such as greedy",
    f"{RUN} --strategy greedy --model nonsense": "There is no model 'nonsense'",
    f"{RUN} --strategy speculative --draft nonsense": "There is no model 'nonsense'",
    f"{RUN} --strategy greedy --set nonsense=1": "greedy has no parameter 'nonsense'; it has: repetition",
    f"{RUN} --strategy eagle --set depth=x": "depth must be a whole number",
    f"{RUN} --strategy greedy --set memory=nonsense": "memory must be one of",
}


def test_answers_that_need_no_model_import_neither_torch_nor_transformers():
    command = [sys.executable, "-c", COMMANDS, *ANSWERED]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    answers = done.stdout.split("> ")[1:]
    for (given, words), answer in zip(ANSWERED.items(), answers, strict=True):
        assert words in answer, given
        assert answer.rstrip().endswith("imported"), given
