"""Measures the shipped models, stores the results beside their weights, and writes their cards.

    python -m explorer measure [NAME ...] --corpus FOLDER

`MEASURES` says what is measured of each model; the other files of this folder do it.
"""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from decoders.refusal import Refusal
from explorer.training import cards, loop
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
    measure_seq2seq,
    measure_streams,
    measure_summaries,
    measure_tasks,
    measure_verilog,
)
from explorer.training.evaluation.findings import Findings, keep
from explorer.training.rows import draft_heads

Measure = Callable[[Path, Path], Findings]  # a model's folder and the corpus -> what was found
FEW_TASKS = ("word_problem", "json", "python")  # for drafts, beside stories
few_tasks = partial(measure_acceptance.measure, tasks=FEW_TASKS)

# model -> what is measured of it, in this order
MEASURES: dict[str, tuple[Measure, ...]] = {
    "llama-tiny": (
        measure_tasks.measure_votes,
        measure_drafts.measure_exits,
        measure_tasks.measure_story,
    ),
    "llama-tiny-draft": (measure_acceptance.measure,),
    "llama-tiny-draft-distilled": (measure_acceptance.measure,),
    "llama-tiny-fastdraft-pretrained": (few_tasks,),
    "llama-tiny-fastdraft-continued": (few_tasks,),
    "llama-tiny-fastdraft": (few_tasks,),
    "llama-tiny-sorted": (few_tasks,),
    "llama-tiny-moe": (measure_tasks.measure, measure_tasks.measure_story),
    **{row.name: (measure_drafts.measure_heads,) for row in draft_heads.ROWS},
    "llama-tiny-diffusion": (measure_diffusion.measure,),
    "llama-tiny-set-block": (partial(measure_causal_past.measure, strategy="set_block"),),
    "llama-tiny-deer": (measure_deer.measure,),
    "llama-tiny-filter": (measure_filter.measure,),
    "llama-tiny-wedlm": (partial(measure_causal_past.measure, strategy="wedlm"),),
    "llama-tiny-acceptance": (measure_acceptance_head.measure,),
    "llama-tiny-aligned": (measure_aligned.measure,),
    "llama-tiny-autodeco": (measure_autodeco.measure,),
    "llama-tiny-adaeagle": (measure_adaeagle.measure,),
    "llama-tiny-lud": (partial(measure_causal_past.measure, strategy="lud"),),
    "llama-tiny-flaws": (measure_flaws.measure,),
    "llama-tiny-flow": (measure_flow.measure,),
    "llama-tiny-forms": (measure_forms.measure,),
    "llama-tiny-judge": (measure_judge.measure,),
    "llama-tiny-leank": (measure_leank.measure,),
    "llama-tiny-lens": (measure_lens.measure,),
    "llama-tiny-outlook": (measure_outlook.measure,),
    "llama-tiny-ranker": (measure_ranker.measure,),
    "llama-tiny-reward": (measure_reward.measure,),
    "llama-tiny-planner": (measure_summaries.measure_planner,),
    "llama-tiny-streams": (measure_streams.measure,),
    "llama-tiny-summaries": (measure_summaries.measure,),
    "llama-tiny-verilog": (measure_verilog.measure,),
    "llama-tiny-verilog-heads": (measure_verilog.measure_heads,),
    "llama-tiny-seq2seq": (measure_seq2seq.measure,),
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
        for measure in MEASURES[name]:
            keep(loop.MODELS / name, measure(loop.MODELS / name, args.corpus))
    for name in shipped:
        cards.write(loop.MODELS / name)
