"""The table of vLLM's speculative metrics, each with what it counts and its formula.

Knows rows of visualizers.analysis.speculation_report, no lane.
"""

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
    return [[one["name"], metric(one["value"]), one["words"], one["formula"]] for one in metrics]


def metric(value: int | float | list) -> str:
    """A metric's value: counts as they are, shares and means with three digits, lists one after the other."""
    if isinstance(value, list):
        return "  ".join(map(metric, value))
    return str(int(value)) if value == int(value) else f"{value:.3f}".removeprefix("0")
