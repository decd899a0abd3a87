"""Can a model learn from a text while reading it?

After each window the cached keys and values take a gradient step that would have made the window more likely
(hidden state optimisation); the text after it is predicted with the changed cache. Texts: problems of one
task in a row, and this project's own README, which is unlike anything that the model was trained on. loss:
mean -log p in nats per token, each predicted before its own gradient is used; step 0 is the plain model.
"""

from pathlib import Path
from statistics import fmean

import torch
from transformers import PreTrainedModel

from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.models.moving_states import window_losses
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import moved, rows_of
from explorer.tasks import HELD_OUT_SEED, problems

PAPERS = ("making-the-most-of-your-model",)
TASKS, TEXTS, TOKENS, WINDOW = ("facts", "translate", "json"), 3, 400, 25
TOGETHER = 5  # positions per cell of the picture
CHARACTERS = 1000  # per text, at most 512 tokens
STEPS = {"sgd": (0.1, 0.3, 1.0, 3.0), "adam": (0.001, 0.003, 0.01, 0.03)}
README = Path(__file__).resolve().parents[2] / "README.md"


def texts(models: Models) -> dict[str, list[list[int]]]:
    """Kind -> tokens of its texts."""
    encode = models["target"].encode
    result = {}
    for task in TASKS:
        made = [f"{p.prompt}{p.answer}\n" for p in problems(task, 20 * TEXTS, HELD_OUT_SEED)]
        result[task] = [encode("".join(made[at::TEXTS])[:CHARACTERS])[:TOKENS] for at in range(TEXTS)]
    whole = README.read_text("utf-8")
    pieces = [whole[at * CHARACTERS : (at + 1) * CHARACTERS] for at in range(TEXTS)]
    result["README"] = [encode(piece)[:TOKENS] for piece in pieces]
    return result


def run(models: Models) -> Result:
    """One row per kind of text, rule and step; curves of the best over the windows."""
    model, rows, lines, says, pictures = models["target"].model, [], [], [], []
    each: dict[tuple[str, str, float], list[float]] = {}
    for kind, some in progress.each(texts(models).items()):
        plain = [window_losses(model, text, WINDOW, 0.0) for text in some]
        losses = {("—", 0.0): plain}
        for rule, steps in progress.each(STEPS.items()):
            for step in progress.each(steps):
                losses[rule, step] = [
                    window_losses(model, text, WINDOW, step, rule) for text in progress.each(some)
                ]
        each |= {(kind, *key): [fmean(one) for one in each_text] for key, each_text in losses.items()}
        means = {
            key: fmean([loss for each in each_text for loss in each]) for key, each_text in losses.items()
        }
        for (rule, step), loss in means.items():
            won = fmean(
                [
                    a < b
                    for one, two in zip(losses[rule, step], plain, strict=True)
                    for a, b in zip(one, two, strict=True)
                ]
            )
            rows.append([kind, rule, step, loss, loss - means["—", 0.0], won if step else None])
        best = min(means, key=means.__getitem__)
        says.append(
            f"{kind}: {means['—', 0.0]:.3f} nats per token without steps, {means[best]:.3f} at best "
            f"({'no step' if best[0] == '—' else f'{best[0]} {best[1]:g}'})."
        )
        if kind == "README":
            for name, key in (("plain", ("—", 0.0)), ("moved", best)):
                lines.append(Line(name, by_window(losses[key])))
            pictures = [picture(model, some[0], *best)] if best[1] else []
    columns = ["text", "rule", "step", "loss", "against plain", "tokens that gain"]
    chart = Chart("The README, window by window", "window", "nats per token", lines)
    kind, *setting = min(rows, key=lambda row: row[4])[:3]
    gains = [a - b for a, b in zip(each[kind, *setting], each[kind, "—", 0.0], strict=True)]
    compared = [by_pairs(f"loss on {kind}, moved states against plain", gains)]
    return Result(columns, rows, says, chart, pictures=pictures, compared=compared)


def picture(model: PreTrainedModel, text: list[int], rule: str, step: float) -> Heat:
    """How far the states of a text have moved by its end, by layer and position, with some positions
    grouped.
    """
    moved: list[torch.Tensor] = []
    window_losses(model, text, WINDOW, step, rule, moved)
    rows = [[round(float(part.mean()), 4) for part in layer.split(TOGETHER)] for layer in moved]
    places = [f"from position {at * TOGETHER + 1} on" for at in range(len(rows[0]))]
    strips = [Strip(f"layer {number}", places, [row]) for number, row in enumerate(rows, 1)]
    says = "the distance of keys and values from where they were computed"
    columns = ["positions of the README's first piece"]
    return Heat("How far the cached states have moved", says, columns, strips, 0.0, max(map(max, rows)))


def by_window(losses: list[list[float]]) -> list[list[float]]:
    """[number, mean loss] of each window, over all texts."""
    count = min(map(len, losses)) // WINDOW
    return [
        [float(at + 1), fmean([loss for one in losses for loss in one[at * WINDOW : (at + 1) * WINDOW]])]
        for at in range(count)
    ]


def finding(answer: dict) -> str:
    """The kind of text that gains most."""
    rows = rows_of(answer)
    best = min(rows, key=lambda row: row["against plain"])
    plain = best["loss"] - best["against plain"]
    text = {"translate": "translations", "facts": "questions on facts", "json": "records"}.get(
        best["text"], f"the {best['text']}"
    )
    return (
        f"When only the cached keys and values learn while the model reads, its loss on {text} "
        f"{moved(plain, best['loss'])} nats per token; no weight changes."
    )


def stands(answer: dict) -> Basis:
    """Texts of each kind."""
    return Basis({"texts of each kind": TEXTS}, compared=as_measured(answer))
