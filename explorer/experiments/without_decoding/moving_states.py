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

from explorer.experiments import Chart, Line, Models, Result
from explorer.experiments.models.moving_states import window_losses
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import Row, grouped, lowest, moved, rows_of
from explorer.experiments.sweep import Difference, Setting, Sweep, concluded, swept
from explorer.tasks import HELD_OUT_SEED, problems

PAPERS = ("making-the-most-of-your-model",)
TASKS, TEXTS, TOKENS, WINDOW = ("facts", "translate", "json"), 3, 400, 25
TOGETHER = 5  # positions per cell of the picture
CHARACTERS = 1000  # per text, at most 512 tokens
STEPS = {"sgd": (0.1, 0.3, 1.0, 3.0), "adam": (0.001, 0.003, 0.01, 0.03)}
PLAIN = "—"  # the rule without steps
README = Path(__file__).resolve().parents[3] / "README.md"


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


def settings(models: Models) -> list[Setting]:
    """Every kind of text, without steps and with every rule and size of step."""
    rules = [(PLAIN, 0.0), *((rule, step) for rule, steps in STEPS.items() for step in steps)]
    return [
        Setting((kind, *rule), rule[0], {"step": rule[1]}, [(text,) for text in some])
        for kind, some in texts(models).items()
        for rule in rules
    ]


def read(models: Models, rule: str, text: list[int], step: float) -> list[float]:
    """The loss at each token of a text."""
    return window_losses(models["target"].model, text, WINDOW, step, *([rule] if step else []))


def loss(texts: list[list[float]]) -> float:
    """The mean loss at a token."""
    return fmean(one for losses in texts for one in losses)


def measures(texts: list[list[float]], plain: list[list[float]]) -> Row:
    """The loss, and at how many tokens it is below that without steps."""
    pairs = [pair for both in zip(texts, plain, strict=True) for pair in zip(*both, strict=True)]
    return {
        "loss": loss(texts),
        "against plain": loss(texts) - loss(plain),
        "tokens that gain": None if texts == plain else fmean(one < other for one, other in pairs),
    }


def best_of(rows: list[Row], kind: str) -> tuple[Row, Row]:
    """The row of a kind of text with the lowest loss, and the one without steps."""
    own = [row for row in rows if row["text"] == kind]
    return lowest(own, "loss"), own[0]


def says(rows: list[Row]) -> list[str]:
    """Each kind of text without steps, and at its best."""
    sentences = []
    for kind in grouped(rows, "text"):
        best, plain = best_of(rows, kind)
        setting = f"{best['rule']} {best['step']:g}" if best["step"] else "no step"
        sentences.append(
            f"{kind}: {plain['loss']:.3f} nats per token without steps, {best['loss']:.3f} at best "
            f"({setting})."
        )
    return sentences


SWEEP = Sweep(
    names=("text", "rule", "step"),
    settings=settings,
    decode=read,
    measures=measures,
    within="text",
    says=says,
    differences=(
        Difference(
            "loss on {0[text]}, moved states against plain",
            loss,
            lambda rows: best_of(rows, lowest(rows, "against plain")["text"]),
        ),
    ),
    sampled={"texts of each kind": TEXTS},
)


def run(models: Models) -> Result:
    """The sweep, with the best setting of the README window by window."""
    made = swept(models, SWEEP)
    best, plain = best_of(made.rows, "README")
    drawn = {"plain": plain, "moved": best}
    lines = [Line(name, by_window(made.outcomes[made.at(row)])) for name, row in drawn.items()]
    chart = Chart("The README, window by window", "window", "nats per token", lines)
    (text,) = made.settings[made.at(best)].cases[0]
    moved_far = [picture(models["target"].model, text, best["rule"], best["step"])] if best["step"] else []
    return concluded(made, SWEEP, chart=chart, pictures=moved_far)


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
    best = lowest(rows, "against plain")
    plain = best["loss"] - best["against plain"]
    text = {"translate": "translations", "facts": "questions on facts", "json": "records"}.get(
        best["text"], f"the {best['text']}"
    )
    return (
        f"When only the cached keys and values learn while the model reads, its loss on {text} "
        f"{moved(plain, best['loss'])} nats per token; no weight changes."
    )
