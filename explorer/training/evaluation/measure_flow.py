"""How many sentences the flow model corrects, by the number of steps and of candidates. Decodes with the
strategy itself, on sentences that its recipe never trains on.
"""

import random
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from decoders.diffusion.candidates import word_error_rate
from decoders.models.flow import FlowModel
from decoders.models.loaded_model import LoadedModel
from explorer.corpus import read_stories
from explorer.tasks import HELD_OUT_SEED, Problem, problems
from explorer.training.answers import ACCURACIES, accuracy
from explorer.training.data.sentences import spoiled, unread_sentences
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import traces
from explorer.training.recipes.llama_tiny_flow import CANVAS

PROBLEMS = 40
WAYS = {  # what a column is called -> parameters of the lane
    **{f"{n} step{'s' if n > 1 else ''}": {"num_steps": n} for n in (1, 2, 4, 8, 16)},
    "8 candidates": {"num_steps": 16, "num_candidates": 8, "temperature": 0.1},
}


def held_out(tokenizer: PreTrainedTokenizerFast, corpus: Path) -> dict[str, list[Problem]]:
    """Problems by rule, and sentences of held-out stories that fit the canvas."""
    stories, held = read_stories(corpus)
    unread = unread_sentences(stories, held)
    fitting = [s for s in unread if len(tokenizer(f" {s}")["input_ids"]) < CANVAS]
    rng = random.Random("held out")
    chosen = rng.sample(fitting, min(PROBLEMS, len(fitting)))
    made = [spoiled(right, rng) for right in chosen]
    return {"correct": problems("correct", PROBLEMS, HELD_OUT_SEED), "correct (stories)": made}


def measure(folder: Path, corpus: Path) -> Findings:
    """Task -> way -> share corrected, and likewise the mean word error rate."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = LoadedModel(folder.name, FlowModel.from_pretrained(folder).float().eval(), tokenizer)
    solved: dict[str, dict[str, float]] = {}
    rates: dict[str, dict[str, float]] = {}
    for name, asked in held_out(tokenizer, corpus).items():
        solved[name], rates[name] = {}, {}
        for way, parameters in WAYS.items():
            prompts = [problem.prompt for problem in asked]
            lanes = traces("drax", prompts, {"target": model}, parameters, CANVAS, seed=0)
            answers = [trace.text().removesuffix(tokenizer.eos_token) for trace in lanes]
            solved[name][way] = accuracy(asked, answers)
            wrong = [word_error_rate(a, p.answer) for a, p in zip(answers, asked, strict=True)]
            rates[name][way] = round(sum(wrong) / len(wrong), 4)
        print(name, solved[name], rates[name], flush=True)
    return Findings({ACCURACIES: solved, "word_error_rates.json": rates})
