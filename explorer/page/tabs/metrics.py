"""The table of vLLM's speculative-decoding metrics, each with its meaning and formula."""

import gradio as gr


def metrics_table(label: str) -> gr.Dataframe:
    """Declares the table."""
    return gr.Dataframe(
        headers=["Metric", "Value", "What it counts", "Formula"],
        label=label,
        interactive=False,
        wrap=True,
        column_widths=["270px", "220px", "300px", "370px"],
    )


def rows(metrics: list[dict]) -> list[list[str]]:
    """The rows of the table."""
    return [[one["name"], value_text(one["value"]), one["words"], one["formula"]] for one in metrics]


def value_text(value: int | float | list) -> str:
    """Formats a metric: counts unchanged, shares and means with three decimals, lists separated by spaces."""
    if isinstance(value, list):
        return "  ".join(map(value_text, value))
    return str(int(value)) if value == int(value) else f"{value:.3f}".removeprefix("0")
