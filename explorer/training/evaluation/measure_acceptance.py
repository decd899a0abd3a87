"""How often drafted tokens are accepted by the shipped target, for held-out stories and for each task."""

from collections.abc import Iterable
from pathlib import Path

from decoders.models.catalog import TARGET
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from explorer.corpus import read_stories
from explorer.experiments import measures
from explorer.tasks import HELD_OUT_SEED, TASKS, problems
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import traces

STORIES, PROBLEMS = 40, 8  # prompts: held-out stories, and problems of each task
PROMPT_TOKENS, NEW_TOKENS, DRAFTED = 24, 64, 4
TEMPERATURES = {"greedy": 0.0, "temperature 1": 1.0}
FILE = "acceptance.json"
Groups = dict[str, list[list[int]]]


def prompts(corpus: Path, target: LoadedModel, tasks: Iterable[str] | None = None) -> Groups:
    """The prompts: the first tokens of held-out stories, and held-out problems of these tasks (None: all)."""
    _, held = read_stories(corpus)
    chosen = held[:: max(1, len(held) // STORIES)][:STORIES]
    result = {"stories": [target.encode(story)[:PROMPT_TOKENS] for story in chosen]}
    for name in TASKS if tasks is None else tasks:
        result[name] = [target.encode(p.prompt) for p in problems(name, PROBLEMS, HELD_OUT_SEED)]
    return result


def acceptance(
    pair: dict[str, LoadedModel], asked: list[list[int]], temperature: float
) -> tuple[float, float]:
    """(accepted over tested drafted tokens, new tokens per target forward) of chains of four. Tokens after
    the first rejection of a round are not tested.
    """
    settings = {"num_assistant_tokens": DRAFTED, "temperature": temperature}
    lanes = traces("speculative", asked, pair, settings, NEW_TOKENS)
    return measures.acceptance(lanes) or 0.0, measures.tokens_per_forward(lanes)


def measure(folder: Path, corpus: Path, tasks: Iterable[str] | None = None) -> Findings:
    """Of a draft whose target is in the neighbouring folder: group -> `greedy` and `temperature 1`, shares of
    the tested tokens, and for both, with ` tokens` after the name, new tokens per target forward; as a fact
    the greedy share of stories.
    """
    pair = {"target": load(str(folder.parent / TARGET)), "draft": load(str(folder))}
    result = {}
    for group, asked in prompts(corpus, pair["target"], tasks).items():
        row = result[group] = {}
        for name, temperature in TEMPERATURES.items():
            row[name], row[f"{name} tokens"] = acceptance(pair, asked, temperature)
        print(f"{group:16}", "  ".join(f"{k} {v:.3f}" for k, v in row.items()), flush=True)
    return Findings({FILE: result}, {"greedy_acceptance": round(result["stories"]["greedy"], 4)})
