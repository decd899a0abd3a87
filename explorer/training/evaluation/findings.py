"""What a measurement leaves beside a model's weights."""

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Findings:
    """files: name -> content, JSON unless it is a text; facts: what is added to the facts of the model."""

    files: dict[str, dict | str]
    facts: dict = field(default_factory=dict)


def keep(folder: Path, findings: Findings) -> None:
    """Writes them into the folder of a model."""
    for name, content in findings.files.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        (folder / name).write_text(text + "\n", "utf-8")
    if findings.facts:
        facts = json.loads((folder / "facts.json").read_text("utf-8")) | findings.facts
        (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
