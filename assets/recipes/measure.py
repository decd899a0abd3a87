"""Measures the shipped target with each of its drafts on held-out stories and on the tasks, and writes the
cards of all shipped models: losses, accuracies (from measure_tasks.py), acceptance, a sample.

    PYTHONPATH=. python assets/recipes/measure.py --corpus FOLDER
"""

import argparse
import csv
import json
from pathlib import Path

from cards import card
from corpus import read_stories
from measure_tasks import HELD_OUT_SEED, table
from training import MODELS

from decoders.lane import Lane, Limits
from decoders.models import LoadedModel, load
from decoders.trace import Verdict
from explorer.tasks import TASKS, problems

TARGET, DRAFTS = "llama-tiny", ("llama-tiny-draft", "llama-tiny-draft-distilled")
STORIES, PROBLEMS = 40, 8  # prompts: held-out stories, and problems of each task
PROMPT_TOKENS, NEW_TOKENS, DRAFTED = 24, 64, 4
TEMPERATURES = (0.0, 1.0)
WHAT = {
    "llama-tiny": "The target model of Decoding Explorer: a small Llama that tells simple stories.",
    "llama-tiny-draft": "A draft model for `llama-tiny`: two layers, trained on the same stories.",
    "llama-tiny-draft-distilled": "The draft model for `llama-tiny`: `llama-tiny-draft`, trained on towards "
    "the target's distributions, half of the time on texts that the target wrote itself.",
}
Groups = dict[str, list[list[int]]]


def prompts(corpus: Path, target: LoadedModel) -> Groups:
    """What is continued: the first tokens of held-out stories, and held-out problems of every task."""
    _, held = read_stories(corpus)
    chosen = held[:: max(1, len(held) // STORIES)][:STORIES]
    found = {"stories": [target.encode(story)[:PROMPT_TOKENS] for story in chosen]}
    for name in TASKS:
        found[name] = [target.encode(p.prompt) for p in problems(name, PROBLEMS, HELD_OUT_SEED)]
    return found


def acceptance(
    pair: dict[str, LoadedModel], asked: list[list[int]], temperature: float
) -> tuple[float, float]:
    """(accepted over tested drafted tokens, new tokens a target forward) of chains of four. Tokens after the
    first rejection of a round are not tested.
    """
    settings = {"num_assistant_tokens": DRAFTED, "temperature": temperature}
    limits = Limits(NEW_TOKENS)
    traces = [
        Lane("speculative", p, pair, settings, seed=i, limits=limits).run() for i, p in enumerate(asked)
    ]
    tested = [v.status for t in traces for s in t.steps for v in s.of(Verdict)]
    accepted, rejected = tested.count("accepted"), tested.count("rejected")
    rounds = sum(len(t.costs.per_step_drafted) for t in traces)
    return accepted / max(1, accepted + rejected), sum(t.costs.new_tokens for t in traces) / rounds


def acceptances(draft: str, target: LoadedModel, groups: Groups) -> dict[str, dict[str, float]]:
    """group -> acceptance and tokens a target forward, greedy and at temperature 1."""
    pair, found = {"target": target, "draft": load(draft)}, {}
    for group, asked in groups.items():
        (greedy, length), (sampled, sampled_length) = (acceptance(pair, asked, t) for t in TEMPERATURES)
        found[group] = {"greedy": greedy, "temperature 1": sampled}
        print(
            f"{draft:28}{group:16}{greedy:.3f} {length:.2f}   {sampled:.3f} {sampled_length:.2f}", flush=True
        )
        if group == "stories":
            found[group] |= {"tokens": length}
    return found


def sample(models: dict[str, LoadedModel]) -> str:
    """A story of the target's, as a section of the card."""
    start, shape = "Once upon a time, there was a little", {"temperature": 0.8, "top_p": 0.9}
    story = Lane("sample", models["target"].encode(start), models, shape, seed=1, limits=Limits(120)).run()
    quote = "> " + (start + story.text()).replace("\n", "\n> ")
    return f"## A sample (temperature 0.8, top_p 0.9, seed 1)\n{quote}\n"


def solved(folder: Path) -> str:
    """The accuracies that measure_tasks.py or measure_diffusion.py left beside the weights, as a section."""
    path = folder / "accuracies.json"
    if not path.exists():
        return ""
    return f"## Tasks solved, in percent of held-out problems\n{table(json.loads(path.read_text()))}\n"


def accepted_by(draft: str, found: dict[str, dict[str, float]]) -> str:
    """The acceptance of one draft, as a section."""
    rows = {group: {k: v for k, v in row.items() if k != "tokens"} for group, row in found.items()}
    return (
        f"## Acceptance of `{draft}` against `{TARGET}`, in percent of the tested tokens\n"
        f"{STORIES} held-out stories and {PROBLEMS} problems of each task, {NEW_TOKENS} new tokens, "
        f"{DRAFTED} drafted a round; greedy on stories: {found['stories']['tokens']:.2f} tokens a target "
        f"forward.\n\n"
        f"{table(rows)}\n"
    )


def main() -> None:
    """Measures and writes all cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    corpus = parser.parse_args().corpus
    target = load(TARGET)
    groups = prompts(corpus, target)
    measured = {draft: acceptances(draft, target, groups) for draft in DRAFTS}
    for name, what in WHAT.items():
        folder = MODELS / name
        facts = json.loads((folder / "facts.json").read_text())
        if name in measured:
            facts["greedy_acceptance"] = round(measured[name]["stories"]["greedy"], 4)
            (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
        with (folder / "loss.csv").open(newline="") as file:
            curve = list(csv.DictReader(file))
        sections = [accepted_by(draft, found) for draft, found in measured.items() if name in (draft, TARGET)]
        own = [sample({"target": target})] if name == TARGET else []
        (folder / "README.md").write_text(
            card(name, what, facts, curve, "\n".join([*own, solved(folder), *sections]))
        )


if __name__ == "__main__":
    main()
