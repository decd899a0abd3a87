"""Measures the shipped target with each of its drafts on held-out stories and writes the model cards: losses,
greedy acceptance, a sample.

    PYTHONPATH=. python assets/recipes/measure.py --corpus FOLDER
"""

import argparse
import csv
import json
from pathlib import Path

from cards import card
from corpus import read_stories
from training import MODELS

from decoders.lane import Lane, Limits
from decoders.models import LoadedModel, load
from decoders.trace import Trace, Verdict

PROMPTS, PROMPT_TOKENS, NEW_TOKENS = 40, 24, 64


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


def main() -> None:
    """Measures and writes all cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    corpus = parser.parse_args().corpus
    models = {"target": load("llama-tiny")}
    prompts = held_out_prompts(corpus, models["target"])
    said, accepted = {}, {}
    for draft in ("llama-tiny-draft", "llama-tiny-draft-distilled"):
        pair = models | {"draft": load(draft)}
        settings = {"num_assistant_tokens": 4}
        traces = [Lane("speculative", p, pair, settings, limits=Limits(NEW_TOKENS)).run() for p in prompts]
        accepted[draft] = greedy_acceptance(traces)
        rounds = sum(len(t.costs.per_step_drafted) for t in traces)
        length = sum(t.costs.new_tokens for t in traces) / rounds
        said[draft] = (
            f"Greedy acceptance of `{draft}` against `llama-tiny`, {len(prompts)} held-out stories, "
            f"{NEW_TOKENS} new tokens, 4 drafted a round: {accepted[draft]:.3f} of the tested tokens, "
            f"{length:.2f} tokens a target forward."
        )
    said["llama-tiny"] = "\n\n".join(said.values())
    start = "Once upon a time, there was a little"
    shape = {"temperature": 0.8, "top_p": 0.9}
    story = Lane("sample", models["target"].encode(start), models, shape, seed=1, limits=Limits(120)).run()
    quote = "> " + (start + story.text()).replace("\n", "\n> ")
    target = "llama-tiny"
    what = {
        "llama-tiny": "The target model of Decoding Explorer: a small Llama that tells simple stories.",
        "llama-tiny-draft": "A draft model for `llama-tiny`: two layers, trained on the same stories.",
        "llama-tiny-draft-distilled": "The draft model for `llama-tiny`: `llama-tiny-draft`, trained on "
        "towards the target's distributions, half of the time on texts that the target wrote itself.",
    }
    for name in what:
        facts = json.loads((MODELS / name / "facts.json").read_text())
        if name in accepted:
            facts["greedy_acceptance"] = round(accepted[name], 4)
        (MODELS / name / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
        with (MODELS / name / "loss.csv").open(newline="") as file:
            curve = list(csv.DictReader(file))
        sample = f"## A sample (temperature 0.8, top_p 0.9, seed 1)\n{quote}\n\n" if name == target else ""
        (MODELS / name / "README.md").write_text(card(name, what[name], facts, curve, sample + said[name]))
    print(said[target])


if __name__ == "__main__":
    main()
