"""The chart of a training run: losses on training and held-out text against the tokens read.

Takes the columns of a model's loss.csv.
"""

import plotly.graph_objects as go

from visualizers.figures.charts import chart, lane_line, nothing, number, reader
from visualizers.figures.theme import theme

TOKENS, TRAINING, HELD_OUT = "million_tokens", "training_loss", "held_out_loss"


def losses(name: str, columns: dict[str, list[float]], look: str = "light") -> go.Figure:
    """The loss curves of one model, held out solid and training dashed.

    columns: `million_tokens`, and `training_loss` and `held_out_loss`, each perhaps with the name of a
    part in front (`medusa_training_loss`). Raises Refusal with one sentence for an unknown look.
    """
    tokens, title = columns.get(TOKENS, []), f"{name}: nats per token"
    parts = [column.removesuffix(HELD_OUT) for column in columns if column.endswith(HELD_OUT)]
    if not tokens or not parts:
        return nothing(title, f"No losses of {name} are known.", look)
    kinds = {"held out": HELD_OUT, "training": TRAINING}
    shown = {
        " ".join([part.strip("_"), kind]).strip(): (place, dash, columns[part + column])
        for place, part in enumerate(parts)
        for dash, (kind, column) in zip(("solid", "dash"), kinds.items(), strict=True)
    }
    last = ", ".join(f"{kind} {number(values[-1], 2)}" for kind, (_, _, values) in shown.items())
    made = chart(
        title,
        "by million tokens read, measured",
        f"After {tokens[-1]:g} million tokens: {last}.",
        look,
        {"words": "million tokens read", "rangemode": "tozero"},
        {"words": "nats per token"},
        len(shown),
    )
    for kind, (place, dash, values) in shown.items():
        line = lane_line("", kind, place, tokens, values, theme(look), line={"dash": dash, "width": 1.6})
        made.add_trace(line if len(parts) > 1 else line.update(mode="lines"))
    lines = [
        f"After {read:g} million tokens: "
        + ", ".join(f"{kind} {number(values[at], 2)}" for kind, (_, _, values) in shown.items())
        + "."
        for at, read in enumerate(tokens)
    ]
    return reader(made, tokens, lines)
