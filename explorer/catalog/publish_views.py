"""Writes to assets/views.json which views each strategy offers before it has run, when run as a program:
those of its recorded run, by `visualizers.offered`.
"""

import json

from decoders.packages import assets
from decoders.registry import strategies
from decoders.trace.trace import load
from explorer.catalog.method_cards import file_of
from visualizers.offered import views_of


def found_views() -> dict[str, list[str]]:
    """Name of a strategy -> the views of its recorded run, for those that have one."""
    return {
        name: views_of(load(file_of(name)), strategy.view)
        for name, strategy in strategies().items()
        if file_of(name).exists()
    }


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(views)}" for name, views in found_views().items())
    (assets() / "views.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
