"""A file of prompts: a text, one prompt per line, or JSON lines."""

import json
from dataclasses import dataclass
from pathlib import Path

from decoders.refusal import Refusal
from explorer.text_file import read_text

MANY = 1000  # maximum number of prompts in a report
# Keys of a JSON line that may hold the prompt: the first one present is used, and of several turns the first.
FIELDS = ("prompt", "text", "turns")


@dataclass(frozen=True)
class Prompt:
    """A prompt and, if its file says so, its category of task."""

    text: str
    category: str | None = None


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a file. Each non-empty line is text (`.txt`) or JSON (`.jsonl`): a string, or an
    object with `prompt`, `text` or `turns`, and optionally `category`.

    Raises Refusal with one sentence that names the unreadable line.
    """
    return prompts_of(read_text(path), path.name, path.suffix in (".jsonl", ".json"))


def prompts_of(text: str, name: str, as_json: bool | None = None, most: int = MANY) -> list[Prompt]:
    """The prompts in the content of a file called `name`. as_json None: the file is JSON lines if every
    non-empty line begins with a brace. Raises Refusal with one sentence if there are none, more than
    `most`, or an unreadable line.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if as_json is None:
        as_json = all(line.lstrip().startswith("{") for _, line in lines)
    if not lines:
        raise Refusal(f"{name} contains no prompt; write one per line.")
    if len(lines) > most:
        raise Refusal(f"{name} contains {len(lines):,} prompts; a report takes at most {most:,}.")
    return [read_line(line, f"{name}, line {at}") if as_json else Prompt(line) for at, line in lines]


def read_line(line: str, where: str) -> Prompt:
    """Parses one JSON line. Raises Refusal with one sentence if it contains no prompt."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise Refusal(f"{where} is not valid JSON: {error.msg} at character {error.pos + 1}.") from error
    given = value if isinstance(value, dict) else {"prompt": value}
    text = next((given[name] for name in FIELDS if name in given), None)
    text = text[0] if isinstance(text, list) and text else text
    if not isinstance(text, str) or not text:
        raise Refusal(f"{where} has no prompt; give it a text named {', '.join(FIELDS[:2])} or turns.")
    category = given.get("category")
    return Prompt(text, str(category) if category is not None else None)
