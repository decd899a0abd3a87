"""Writes the declarations of all strategies to assets/strategies.json, when it is run as a program."""

import json

from decoders import registry
from decoders.strategy_files import published_path


def publish(declarations: list[dict]) -> None:
    """Writes the file: a line for each strategy and for each parameter; shared parameters stand once."""
    lines: dict[str, int] = {}  # a parameter as JSON -> its index
    strategies = []
    for one in declarations:
        indices = [lines.setdefault(json.dumps(p), len(lines)) for p in one["parameters"]]
        strategies.append(json.dumps(one | {"parameters": indices}))
    rows = {"parameters": [*lines], "strategies": strategies}
    parts = [f'"{name}": [\n' + ",\n".join(listed) + "\n]" for name, listed in rows.items()]
    published_path().write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


if __name__ == "__main__":
    publish([strategy.declaration() for strategy in registry.strategies().values()])
