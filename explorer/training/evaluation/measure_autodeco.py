"""What the heads of llama-tiny-autodeco gain over fixed temperatures and top-p: on held-out text by their
training loss, and on held-out problems by sampled answers.
"""

from pathlib import Path

import torch

from decoders.heads import AutoDeco
from decoders.heads.scorers.autodeco import at_temperature, taught, temperature_loss
from decoders.models.loaded_model import LoadedModel
from explorer.corpus import pack, read_stories, rows_of
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.training.answers import ACCURACIES, accuracy, answers
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import answer_of, model_with, traces
from explorer.training.recipes.llama_tiny_autodeco import gathered, joined, right_answers
from explorer.training.recipes.llama_tiny_reward import graded_row

ROWS = 16  # of stories
SAMPLED = 4  # answers to each problem, of which the right ones are read
GRID = tuple(round(0.05 * step, 2) for step in range(1, 41))  # single temperatures
TEMPERATURES, TOP_PS = (0.25, 0.5, 0.75, 1.0), (0.8, 0.95, 1.0)
ASKED = ("sum", "difference", "column_sum", "chain", "word_problem", "countdown", "reverse", "sort", "count")
PROBLEMS, NEW_TOKENS = 20, 80
FILE = "temperatures.json"


def losses(logits: torch.Tensor, tokens: torch.Tensor, t: torch.Tensor) -> tuple[dict[str, float], float]:
    """(the loss at temperature 1, at the best single temperature, at those of the heads t [N]; the best
    temperature).
    """
    kept = taught(logits, tokens, at_random=False)
    single = {g: temperature_loss(logits, torch.full_like(t, g), tokens, kept).item() for g in GRID}
    best = min(single, key=single.get)
    learned = temperature_loss(logits, t, tokens, kept).item()
    return {"T 1": single[1.0], "best single T": single[best], "heads": learned}, best


def nuclei(logits: torch.Tensor, tokens: torch.Tensor, t: torch.Tensor, p: torch.Tensor) -> dict[str, float]:
    """Means of the heads' predictions, and of the nuclei of a hard top-p."""
    probs = at_temperature(logits, t)
    above = probs.sort(dim=-1, descending=True).values
    counts = 1 + ((above.cumsum(-1) < p[:, None])[:, :-1]).sum(-1)
    rank = (probs > probs.gather(-1, tokens[:, None])).sum(-1)
    means = {"temperature": t, "top-p": p, "tokens left": counts.float(), "covered": (rank < counts).float()}
    return {name: value.mean().item() for name, value in means.items()}


def own_answers(model: LoadedModel) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and labels of right answers to held-out problems, sampled at temperature 1; see
    `right_answers`.
    """
    asked = [p for task in ASKED for p in problems(task, PROBLEMS, HELD_OUT_SEED) for _ in range(SAMPLED)]
    torch.manual_seed(0)
    wrote = answers(model.model, model.tokenizer, [p.prompt for p in asked], 1.0, NEW_TOKENS)
    graded = [graded_row(model.tokenizer, p, text) for p, text in zip(asked, wrote, strict=True)]
    rows, truth = zip(*(pair for pair in graded if pair), strict=True)
    return right_answers(torch.tensor(rows), torch.tensor(truth))


@torch.no_grad()
def on_text(model: LoadedModel, heads: AutoDeco, corpus: Path) -> dict[str, dict]:
    """The content of temperatures.json: `losses` and `nuclei` of each kind of text, `chosen` the best single
    temperature of each.
    """
    _, held = read_stories(corpus)
    stories = rows_of(pack(held, model.tokenizer))[-ROWS:]
    rows = {"stories": (stories, stories), "right answers": own_answers(model)}
    read = {group: gathered(model.model, *pair) for group, pair in rows.items() if len(pair[0])}
    read["both"] = joined(list(read.values()))
    result = {"losses": {}, "nuclei": {}, "chosen": {}}
    for group, (hidden, tokens) in read.items():
        logits = heads.target.logits(hidden)
        t, p = heads(hidden, logits)
        result["losses"][group], result["chosen"][group] = losses(logits, tokens, t)
        result["nuclei"][group] = nuclei(logits, tokens, t, p)
        print(group, result["losses"][group], result["nuclei"][group], flush=True)
    return result


def solved(model: LoadedModel, strategy: str, settings: dict) -> dict[str, float]:
    """task -> share of held-out problems that one sampled answer solves."""
    result = {}
    for task in ASKED:
        asked = problems(task, PROBLEMS, HELD_OUT_SEED)
        lanes = traces(strategy, [p.prompt for p in asked], {"target": model}, settings, NEW_TOKENS)
        result[task] = accuracy(asked, [answer_of(model, trace) for trace in lanes])
    print(strategy, settings, round(sum(result.values()) / len(result), 3), flush=True)
    return result


def measure(folder: Path, corpus: Path) -> Findings:
    """What the heads set and gain on held-out text, and how many problems are solved with them; as a fact the
    best fixed pair.
    """
    model = model_with(folder)
    tempered = on_text(model, model.heads["autodeco"], corpus)
    shares, best_fixed = on_problems(model)
    return Findings({FILE: tempered, ACCURACIES: shares}, {"best_fixed": best_fixed})


def on_problems(model: LoadedModel) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """(task -> the shares that are solved, with the mean; the fixed pair that solves most)."""
    pairs = [{"temperature": t, "top_p": p} for t in TEMPERATURES for p in TOP_PS]
    fixed = [solved(model, "sample", pair) for pair in pairs]
    best = max(range(len(pairs)), key=lambda at: sum(fixed[at].values()))
    plain, learned = fixed[pairs.index({"temperature": 1.0, "top_p": 1.0})], solved(model, "autodeco", {})
    rows = {
        task: {"default": plain[task], "best fixed": fixed[best][task], "heads": learned[task]}
        for task in ASKED
    }
    means = zip(*(row.values() for row in rows.values()), strict=True)
    rows["mean"] = dict(zip(rows[ASKED[0]], (sum(column) / len(column) for column in means), strict=True))
    return rows, {**pairs[best], "settings": len(pairs)}
