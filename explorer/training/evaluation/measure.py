"""Measures the shipped models, stores the results beside their weights, and writes their cards.

    python -m explorer measure [NAME ...] --corpus FOLDER

Knows which measurements each model takes; the other files of this folder make them.
"""

from argparse import Namespace
from pathlib import Path

from decoders.refusal import Refusal
from explorer.training import cards, loop, measure_tasks
from explorer.training.evaluation import (
    measure_acceptance,
    measure_acceptance_head,
    measure_adaeagle,
    measure_aligned,
    measure_autodeco,
    measure_causal_past,
    measure_deer,
    measure_diffusion,
    measure_drafts,
    measure_filter,
    measure_flaws,
    measure_flow,
    measure_forms,
    measure_judge,
    measure_leank,
    measure_lens,
    measure_outlook,
    measure_ranker,
    measure_reward,
    measure_streams,
    measure_summaries,
    measure_verilog,
)
from explorer.training.recipes import llama_tiny_seq2seq


def target(folder: Path, corpus: Path) -> None:
    """The tasks, with votes over several answers, the early exits, and a story for the card."""
    measure_tasks.measure(folder, measure_tasks.SAMPLES)
    measure_drafts.measure_exits(folder, corpus)
    measure_tasks.write_sample(folder)


def mixture(folder: Path, corpus: Path) -> None:
    """The tasks, and a story for the card."""
    measure_tasks.measure(folder, samples=0)
    measure_tasks.write_sample(folder)


def few_tasks(folder: Path, corpus: Path) -> None:
    """The acceptance of a draft on stories and a few tasks."""
    measure_acceptance.measure(folder, corpus, ("word_problem", "json", "python"))


# model -> what measures it; each leaves JSON and text files in the folder
MEASURES = {
    "llama-tiny": target,
    "llama-tiny-draft": measure_acceptance.measure,
    "llama-tiny-draft-distilled": measure_acceptance.measure,
    "llama-tiny-fastdraft-pretrained": few_tasks,
    "llama-tiny-fastdraft-continued": few_tasks,
    "llama-tiny-fastdraft": few_tasks,
    "llama-tiny-sorted": few_tasks,
    "llama-tiny-moe": mixture,
    "llama-tiny-heads": measure_drafts.measure_heads,
    "llama-tiny-diffusion": lambda folder, corpus: measure_diffusion.measure(folder),
    "llama-tiny-set-block": lambda folder, corpus: measure_causal_past.measure(folder, "set_block"),
    "llama-tiny-deer": measure_deer.measure,
    "llama-tiny-filter": lambda folder, corpus: measure_filter.measure(folder),
    "llama-tiny-wedlm": lambda folder, corpus: measure_causal_past.measure(folder, "wedlm"),
    "llama-tiny-acceptance": measure_acceptance_head.measure,
    "llama-tiny-aligned": measure_aligned.measure,
    "llama-tiny-autodeco": measure_autodeco.measure,
    "llama-tiny-feature-drafters": measure_drafts.measure_heads,
    "llama-tiny-block-drafters": measure_drafts.measure_heads,
    "llama-tiny-recurrent-heads": measure_drafts.measure_heads,
    "llama-tiny-adaeagle": measure_adaeagle.measure,
    "llama-tiny-lookahead-heads": measure_drafts.measure_heads,
    "llama-tiny-lud": lambda folder, corpus: measure_causal_past.measure(folder, "lud"),
    "llama-tiny-m2r2": measure_drafts.measure_heads,
    "llama-tiny-flaws": lambda folder, corpus: measure_flaws.measure(folder),
    "llama-tiny-flow": measure_flow.measure,
    "llama-tiny-forms": measure_forms.measure,
    "llama-tiny-judge": lambda folder, corpus: measure_judge.measure(folder),
    "llama-tiny-leank": measure_leank.measure,
    "llama-tiny-lens": measure_lens.measure,
    "llama-tiny-outlook": lambda folder, corpus: measure_outlook.measure(folder),
    "llama-tiny-ranker": measure_ranker.measure,
    "llama-tiny-reward": lambda folder, corpus: measure_reward.measure(folder),
    "llama-tiny-planner": lambda folder, corpus: measure_summaries.measure_planner(folder),
    "llama-tiny-streams": lambda folder, corpus: measure_streams.measure(folder),
    "llama-tiny-summaries": lambda folder, corpus: measure_summaries.measure(folder),
    "llama-tiny-verilog": lambda folder, corpus: measure_verilog.measure(folder),
    "llama-tiny-verilog-heads": lambda folder, corpus: measure_verilog.measure_heads(folder),
    "llama-tiny-seq2seq": llama_tiny_seq2seq.measure,
}


def main(args: Namespace) -> None:
    """Measures the models `args.names`, or all shipped ones; then writes every shipped model's card. Raises
    Refusal with one sentence if one is not shipped.
    """
    shipped = [name for name in MEASURES if (loop.MODELS / name / "facts.json").exists()]
    unknown = [name for name in args.names if name not in shipped]
    if unknown:
        raise Refusal(f"There is no shipped model {unknown[0]!r}; choose one of: {', '.join(shipped)}.")
    for name in args.names or shipped:
        print(f"measuring {name}", flush=True)
        MEASURES[name](loop.MODELS / name, args.corpus)
    for name in shipped:
        cards.write(loop.MODELS / name)
