"""The model card: README.md of a model's folder, made from its facts, its loss curve and the stored
measurements, section by section (card_sections.py).
"""

import csv
import json
from pathlib import Path

from decoders import files
from decoders.models import rounded_change
from decoders.models.catalog import TARGET
from explorer.corpus import STORY_MIX
from explorer.shipped import TRAINING, about, recipe_file
from explorer.training.card_sections import ACCEPTED, GUESSES, SECTIONS, Section

DRAFTS = ("llama-tiny-draft", "llama-tiny-draft-distilled")
SOURCES = {
    "tinystories_sample": "TinyStories, first part (CDLA-Sharing-1.0)",
    "tinyfabulist_fables": "klusai/tinyfabulist (MIT)",
    "african_storybook_en": "African Storybook, global-asp/asp-source (CC BY 4.0)",
    "pratham_storyweaver_en": "Pratham Books StoryWeaver, global-asp/pb-source (CC BY 4.0)",
}
SNAKES = "erikhyrkas/snakes (MIT), written by Llama 3.1"
WORDS = "byte-level BPE of 4,096 tokens with single digits, shared by the family"
PROBLEMS = "- problems made by a program, with their checkers: `explorer/tasks`\n"
WARNING = (
    "A model for teaching: it tells simple stories, knows nothing, and must not be used for anything else.\n"
)
BUILT = "Built with Llama: part of the training text was written by Llama 3.1."
ALONE = "A model for teaching: it knows this one thing, and must not be used for anything else.\n"
TITLE = "---\nlicense: apache-2.0\nlibrary_name: transformers\nlanguage: en\n---\n# {name}\n"
LINES = {  # a fact -> the line that tells it
    "held_out_perplexity": "held-out loss {held_out_loss} nats per token (perplexity {held_out_perplexity})",
    "loss_before": "before this training, with its initial weights: {loss_before}",
    "bits_per_byte": "{bits_per_byte} bits per byte of held-out text",
}


def write(folder: Path) -> None:
    """Writes README.md into the folder of a shipped model."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    measured = sections(folder, facts)
    warning = ALONE if "data" in facts else WARNING
    lines = [*front(folder, facts), *measured, data(facts), warning]
    files.write(folder / "README.md", "\n".join(lines))


def front(folder: Path, facts: dict) -> list[str]:
    """The beginning of every card: description, size, losses."""
    name, described = folder.name, about(folder.name)
    built = f"\n{BUILT}\n" if name.startswith("llama") else ""
    return [
        TITLE.format(name=name),
        f"{described[:1].upper()}{described[1:]}\n{built}",
        *what_it_is(folder, facts),
        *how_it_was_trained(folder, facts),
        f"\n{facts['note']}\n" if "note" in facts else "",
        *losses(folder),
    ]


def what_it_is(folder: Path, facts: dict) -> list[str]:
    """Lines about size, format and tokens: of heads, of an adapter, or of a model."""
    size = f"{facts['parameters']:,} parameters"
    if is_heads(folder):
        return [f"- {size} in addition to the target's; file format and loader: `docs/heads.md`"]
    if (folder / "adapter_config.json").exists():
        return [
            f"- merged when loaded: {size}; this folder has {facts['trained_parameters']:,}, in float16 in "
            f"the layout of PEFT (rank {facts['rank']}); the others are those of `{facts['base']}`",
            "- the base's tokenizer and " + " ".join(f"`{token}`" for token in facts["tokens"]),
        ]
    stored = "bfloat16 safetensors"
    if rounded_change.is_change(folder):
        base = rounded_change.base_of(folder).name
        stored = f"stored as the change of `{base}` in eight bits per number, merged when loaded"
    architecture, context = facts.get("architecture", "Llama"), facts.get("context", 512)
    return [
        f"- {architecture} architecture, {size}, context {context}, {stored}",
        f"- {facts.get('tokens', WORDS)}",
    ]


def how_it_was_trained(folder: Path, facts: dict) -> list[str]:
    """Lines about its training, and what its facts say of the result."""
    name = folder.name
    tokens_of = facts.get("tokens_of", "" if is_heads(folder) else "in rows of 256 and 512")
    lines = [
        f"- trained on {facts['million_tokens']} million tokens {tokens_of}".rstrip(),
        f"- recipe: `explorer/training/{recipe_file(name).relative_to(TRAINING).as_posix()}`",
    ]
    if name.startswith("llama"):
        lines.append(f"- measured by `python -m explorer measure {name} --corpus FOLDER`")
    lines += [f"- {line.format(**facts)}" for fact, line in LINES.items() if fact in facts]
    for head, count in facts.get("parameters_of", {}).items():
        lines.append(f"- {head}: {count:,} parameters, held-out loss {facts['held_out_losses'][head]}")
    if "held_out_right" in facts:
        lines.append(f"- right about {100 * facts['held_out_right']:.0f} % of held-out windows")
    areas = {question: area for question, area in facts.get("auc", {}).items() if area is not None}
    if areas:
        listed = ", ".join(f"`{question}` {area:.3f}" for question, area in areas.items())
        lines.append(f"- area under the ROC curve of each question on held-out problems: {listed}")
    return lines


def is_heads(folder: Path) -> bool:
    """Whether a folder holds heads for another model."""
    return "modules" in json.loads((folder / "config.json").read_text("utf-8"))


def losses(folder: Path) -> list[str]:
    """The pictures of the loss curves, and up to eight points if there is a single curve."""
    pictures = [
        f"![Losses of {path.stem.partition('-')[2] or folder.name} against the tokens read]({path.name})\n"
        for path in sorted(folder.glob("loss*.svg"))
    ]
    with (folder / "loss.csv").open(newline="", encoding="utf-8") as file:
        columns, *rows = csv.reader(file)
    if len(columns) > 3:
        return pictures
    points = [rows[i] for i in sorted({round(k * (len(rows) - 1) / 7) for k in range(8)})]
    cells = ["| " + " | ".join(f"{float(value):.2f}" for value in point) + " |" for point in points]
    titles = "| " + " | ".join(column.replace("_", " ") for column in columns) + " |"
    return [*pictures, titles, "|---|---|---|", *cells, ""]


def sections(folder: Path, facts: dict) -> list[str]:
    """What was measured, one section for each measurement."""
    result = []
    if (folder / "sample.txt").exists():
        quote = (folder / "sample.txt").read_text("utf-8").strip().replace("\n", "\n> ")
        result.append(f"## A sample (temperature 0.8, top_p 0.9)\n> {quote}\n")
    for one in SECTIONS:
        if measured := measurement(folder, one.file):
            rows = measured[one.part] if one.part else measured
            result.append(section(one, rows, facts | derived(measured, facts)))
    if guessed := measurement(folder, GUESSES.file):
        is_draft = "greedy" in guessed["stories"]
        result.append(accepted(folder.name, guessed) if is_draft else matched(guessed))
    if folder.name == TARGET:
        others = {draft: measurement(folder.parent / draft, ACCEPTED.file) for draft in DRAFTS}
        result += [accepted(draft, numbers) for draft, numbers in others.items() if numbers]
    return result


def measurement(folder: Path, name: str) -> dict | None:
    """The content of a measurement's file in a folder; None if there is none."""
    path = folder / name
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def derived(measured: dict, facts: dict) -> dict[str, str]:
    """What templates tell besides facts, in words: tokens per forward by setting, the best temperatures, and
    after what topics were measured.
    """
    pace, delta_pace = facts.get("tokens_per_forward", {}), facts.get("tokens_per_forward_by_delta", {})
    sheets = "<e>" in facts.get("tokens", "")  # the model that was trained on fact sheets
    return {
        "target": TARGET,
        "pace": ", ".join(f"{tokens:.2f} with {column}" for column, tokens in pace.items()),
        "delta_pace": ", ".join(f"{tokens:.2f} at delta {delta}" for delta, tokens in delta_pace.items()),
        "temperatures": ", ".join(f"{group} {t:g}" for group, t in measured.get("chosen", {}).items()),
        "begin": "held-out fact sheets" if sheets else "the first ones of held-out stories",
    }


def section(one: Section, rows: dict[str, dict[str, float]], facts: dict) -> str:
    """A section of a card, its templates filled with `facts` of the model."""
    columns = {column for row in rows.values() for column in row}
    says = next((says for column, says in one.by_column.items() if column in columns), one.says)
    shown = {name: {c: v for c, v in row.items() if c not in one.hidden} for name, row in rows.items()}
    title = f"## {one.title.format(**facts)}\n" if one.title else ""
    picture = f"{one.picture}\n\n" if one.picture else ""
    sentence = f"{says.format(**facts)}\n" if says else ""
    return f"{title}{picture}{sentence}\n{table(shown, one.number, one.numbers)}\n"


def accepted(draft: str, measured: dict[str, dict[str, float]]) -> str:
    """The acceptance of one draft, as a section."""
    stories = measured["stories"]
    paces = {"greedy": stories["greedy tokens"], "sampled": stories["temperature 1 tokens"]}
    return section(ACCEPTED, measured, {"draft": draft, "target": TARGET, **paces})


def matched(guessed: dict[str, dict]) -> str:
    """How often the guesses of a target's heads and exits match it, as a section."""
    drafters = "".join(guesses(drafter, guessed) for drafter in guessed["stories"])
    return f"## {GUESSES.title}\n{GUESSES.says}\n\n{drafters}"


def guesses(drafter: str, measured: dict[str, dict[str, dict]]) -> str:
    """The numbers of one head or early exit."""
    rows = {}
    for group, drafters in measured.items():
        source = drafters[drafter]
        first = {f"depth {k}": ranks[0] for k, ranks in enumerate(source["accuracy"], 1)}
        rows[group] = {**first, "temperature 1": source["overlap"][0], "accepted x 100": source["accepted"]}
    return f"### {drafter}\n{table(rows)}\n\n"


def table(rows: dict[str, dict[str, float]], number: str = "", numbers: dict[str, str] | None = None) -> str:
    """Numbers as a Markdown table, in a format such as `.2f`, in percent if it is empty; numbers: the formats
    of single columns. Cells that a row lacks stay empty.
    """
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, row in rows.items():
        cells = (cell(row[c], (numbers or {}).get(c, number)) if c in row else "" for c in columns)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(value: float, number: str) -> str:
    """A number in a format; without one a share as a whole number of percent."""
    return f"{value:{number}}" if number else f"{100 * value:.0f}"


def data(facts: dict) -> str:
    """The section on training data: `data` or `stories` of its facts, otherwise the family's mix with
    problems.
    """
    if "data" in facts:
        return f"## Data\n- {facts['data']}\n"
    files = facts.get("stories")
    lines = [f"- {file}: {SOURCES.get(file, SNAKES)}" for file in files or STORY_MIX]
    return "\n".join(["## Data", *lines, "" if files else PROBLEMS])
