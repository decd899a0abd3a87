"""Measures the shipped pair on held-out stories and writes the model cards: losses, greedy acceptance, a
sample.

    PYTHONPATH=. python assets/recipes/measure.py --corpus FOLDER
"""

import argparse
import csv
import json
from pathlib import Path

from corpus import STORY_MIX, read_stories
from training import MODELS

from decoders.lane import Lane, Limits
from decoders.models import LoadedModel, load
from decoders.trace import Trace, Verdict

PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 40, 24, 64
SOURCES = {
    "tinystories_sample": "TinyStories, first part (CDLA-Sharing-1.0)",
    "tinyfabulist_fables": "klusai/tinyfabulist (MIT)",
    "african_storybook_en": "African Storybook, global-asp/asp-source (CC BY 4.0)",
    "pratham_storyweaver_en": "Pratham Books StoryWeaver, global-asp/pb-source (CC BY 4.0)",
}
SNAKES = "erikhyrkas/snakes (MIT), written by Llama 3.1"


def greedy_acceptance(traces: list[Trace]) -> float:
    """Accepted over tested drafted tokens: those after the first rejection of a round were not tested."""
    tested = [v.status for t in traces for s in t.steps for v in s.of(Verdict)]
    accepted, rejected = tested.count("accepted"), tested.count("rejected")
    return accepted / (accepted + rejected)


def held_out_prompts(corpus: Path, target: LoadedModel) -> list[list[int]]:
    """The first tokens of held-out stories."""
    _, held = read_stories(corpus)
    chosen = held[:: max(1, len(held) // PROMPTS)][:PROMPTS]
    return [target.encode(story)[:PROMPT_TOKENS] for story in chosen]


def card(name: str, what: str, facts: dict, curve: list[dict], extra: str) -> str:
    """The model card."""
    recipe = name.replace("-", "_")
    data = [f"- {file}: {SOURCES.get(file, SNAKES)}" for file in STORY_MIX]
    points = [curve[round(i * (len(curve) - 1) / 7)] for i in range(8)]
    columns = ("million_tokens", "training_loss", "held_out_loss")
    rows = ["| " + " | ".join(f"{float(p[c]):.2f}" for c in columns) + " |" for p in points]
    head = f"""---
license: apache-2.0
library_name: transformers
language: en
---
# {name}

{what}

Built with Llama: part of the training text was written by Llama 3.1. Llama architecture, trained from
scratch.

- {facts["parameters"]:,} parameters, context 512, bfloat16 safetensors; byte-level BPE of 4,096 tokens with
  single digits, shared by the pair
- trained on {facts["million_tokens"]} million tokens in rows of 256; recipe: `assets/recipes/{recipe}.py`
- held-out loss {facts["held_out_loss"]} nats a token (perplexity {facts["held_out_perplexity"]})
"""
    table = ["| million tokens | training loss | held-out loss |", "|---|---|---|", *rows]
    warning = (
        "A teaching exhibit: it tells simple stories, knows nothing, and must not be used for anything else."
    )
    lines = [head, facts.get("note", ""), "", *table, "", extra, "", "## Data", *data, "", warning, ""]
    return "\n".join(lines)


def main() -> None:
    """Measures and writes both cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    corpus = parser.parse_args().corpus
    models = {"target": load("llama-tiny"), "draft": load("llama-tiny-draft")}
    prompts = held_out_prompts(corpus, models["target"])
    settings = {"num_assistant_tokens": 4}
    traces = [Lane("speculative", p, models, settings, limits=Limits(NEW_TOKENS)).run() for p in prompts]
    acceptance = greedy_acceptance(traces)
    rounds = sum(len(t.costs.per_step_drafted) for t in traces)
    length = sum(t.costs.new_tokens for t in traces) / rounds
    pair = (
        f"Greedy acceptance of `llama-tiny-draft` against `llama-tiny`, {len(prompts)} held-out stories, "
        f"{NEW_TOKENS} new tokens, 4 drafted a round: {acceptance:.3f} of the tested tokens, "
        f"{length:.2f} tokens a target forward."
    )
    start = "Once upon a time, there was a little"
    shape = {"temperature": 0.8, "top_p": 0.9}
    story = Lane("sample", models["target"].encode(start), models, shape, seed=1, limits=Limits(120)).run()
    quote = "> " + (start + story.text()).replace("\n", "\n> ")
    target = "llama-tiny"
    what = {
        "llama-tiny": "The target model of Decoding Explorer: a small Llama that tells simple stories.",
        "llama-tiny-draft": "The draft model for `llama-tiny`: two layers that guess what it will say.",
    }
    for name in what:
        facts = json.loads((MODELS / name / "facts.json").read_text())
        facts["greedy_acceptance"] = round(acceptance, 4)
        (MODELS / name / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
        with (MODELS / name / "loss.csv").open(newline="") as file:
            curve = list(csv.DictReader(file))
        sample = f"## A sample (temperature 0.8, top_p 0.9, seed 1)\n{quote}\n\n" if name == target else ""
        (MODELS / name / "README.md").write_text(card(name, what[name], facts, curve, sample + pair))
    print(pair)


if __name__ == "__main__":
    main()
