"""What a measurement leaves beside a model's weights."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from explorer.training.loop import write_json


@dataclass(frozen=True)
class Findings:
    """files: name -> content, JSON unless it is a text; facts: what is added to the facts of the model."""

    files: dict[str, dict | str]
    facts: dict = field(default_factory=dict)


def keep(folder: Path, findings: Findings) -> None:
    """Writes them into the folder of a model."""
    for name, content in findings.files.items():
        if isinstance(content, str):
            (folder / name).write_text(content + "\n", "utf-8")
        else:
            write_json(folder / name, content)
    if findings.facts:
        facts = json.loads((folder / "facts.json").read_text("utf-8"))
        write_json(folder / "facts.json", facts | findings.facts)
