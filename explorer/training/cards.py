"""The model card: README.md of a model's folder, made from its facts, its loss curve and the stored
measurements.

Knows Markdown and where the texts come from; measures nothing.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path

from decoders import files
from decoders.models import rounded_change
from decoders.models.catalog import TARGET
from explorer.corpus import STORY_MIX
from explorer.shipped import about

Section = Callable[[dict, dict], list[str]]  # what was measured, and the model's facts -> parts of its card

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
NEIGHBOURS = (
    "Nats per token after the first chunk of held-out texts: with the neighbours found in the store (for "
    "notes: a note with the same facts in other words), with those of another text, and with the gate at 0.\n"
)
HIDDEN = (
    "`tokens`: how often the most likely token is right after the right ones, sentinels included; `greedy`: "
    "whole answers; `holes`: the fills in them. `spans`: 15 % of comment and module are hidden; "
    "`identifiers`: one to three names of a module are hidden, everywhere, after its comment; `written`: the "
    "module for a comment or the comment for a module; `told`: both, after an empty source. `nearest`: the "
    "last part of a text is found by its first part, by their vectors, among all held-out texts.\n"
)
SOLVED = "## Tasks solved, in percent of held-out problems"
VOTES = (
    "With greedy decoding; for some tasks also at temperature 1: one answer (`sampled`), any of sixteen "
    "(`best`), and the most frequent outcome of the sixteen (`majority`).\n"
)
CHOSEN = (
    "`sampled`: one answer at temperature 1; `chosen`: the one that the heads score highest among {samples} "
    "such answers; `best`: any of them.\n"
)
JUDGED = (
    "With judge decoding, greedily, sixteen tokens drafted per round: `delta 1` is the target's own greedy "
    "text, `delta 0` nearly the draft's. Tokens per target forward, averaged over the tasks: {pace}.\n"
)
ROLLBACKS = (
    "In percent, with greedy decoding: drafted tokens that were `thrown away`, in all branches; `rounds` per "
    "written token; rounds that were `rolled back` after a rejection.\n"
)
PREDICTED = (
    "In percent of the drafted tokens that were tested, on held-out stories and problems: `predicted` is the "
    "mean predicted probability, `accepted` the share that was accepted, `calibration error` the mean "
    "difference between the two over ten bins of predicted probability.\n"
)
AGREED = (
    "On held-out records at temperature 1: the share of answers whose lines all end with the colour of the "
    "first one, the share of right fields, and counts per answer. Without notes a stream cannot know the "
    "colour.\n"
)
TEMPERED = (
    "The loss of the temperature head, in nats per token on held-out text: cross-entropy weighted by the "
    "model's own probabilities; positions where its most likely token is right count 0.4. `best single T` is "
    "the best of a grid, chosen on this very text ({chosen}). If a model's probabilities were calibrated, "
    "this weighting would make 0.5 the best temperature everywhere, so there is little to gain.\n"
)
NUCLEI = (
    "Means on the same text: the predicted temperature and top-p, how many tokens remain to sample from, and "
    "`covered`, how often the next token of the text is among them.\n"
)
DRAWN = (
    "Sampled with the same random numbers in every column; in percent of held-out problems. `default`: "
    "temperature and top-p 1; `best fixed`: the one of {settings} pairs that solves most of these very "
    "problems, which is temperature {temperature:g} with top-p {top_p:g}.\n"
)
REWARDS = (
    "Stories of {tokens} tokens after {prompts} held-out prompts: the mean reward, and how much it exceeds "
    "that of controlled decoding (`cd`), which scores the target's own continuations, prompt by prompt, with "
    "twice the standard error of the difference. `direct` is Transfer Q* with this model, `args` scores bare "
    "prefixes; all three have {shape}.\n"
)
FILLED = (
    "In percent of held-out texts from which a line was removed (a word if there is only one line, a "
    "sentence in stories), decoded greedily after `PRE a SUF c MID`: `exact`: the very text; `right`: the "
    "whole passes the checker; `closed`: the model itself ended the middle.\n"
)
ADHERED = (
    "On held-out fact sheets, greedily after the sheet with tags around a random plan of clauses: F1 of the "
    "clauses in the summary with those of `its plan`, or with `another plan` of as many, and the mean "
    "difference over sheets.\n"
)
CLAUSES = (
    "On held-out fact sheets: F1 of the clauses that their own summaries use with those of its most likely "
    "plan, of the best of its four most likely plans, and of as many first clauses. Which clauses a summary "
    "uses is partly random.\n"
)
FLAWED = (
    "In percent of programs for held-out tasks; the checker is `explorer/tasks/file_programs.py`. `flawed`: "
    "with the label allowed; `announced`: those of them in which the label had a probability above one half "
    "at a flawed line; `flawed without the label`: with the ban (`label_ban`), and how many fewer that is "
    "(`avoided`). In training, a tenth of the flaws had no label.\n"
)
MODULES = "In percent of held-out comments: without its marks, the text is exactly the requested module.\n"
ROUNDS = (
    "On held-out comments, greedily, four tokens guessed per round. `tokens per forward`: of the target; "
    "`end with a fragment`, in percent: rounds whose last accepted token is a mark; `cut`: in percent of the "
    "accepted guesses; `right`: in percent of the texts. The first two ways write the same text.\n"
)
STEERED = (
    "Share of a topic in the words of a sentence, the first one after {begin}: `by itself`, and `under it`, "
    "with the topic forced; with twice the standard error of the paired difference. `named`: how often the "
    "sentence has more of this topic than of any other.\n"
)
COVERED = (
    "F1 of the topics of a greedy text with those of the held-out text that has the same beginning, and the "
    "mean gain over the same model without topic tokens.\n"
)
A_STEP = (
    "By how many tokens each forward commits (the most confident ones, in blocks of 32 positions). "
    "The tokens of an answer to the first five tasks do not depend on each other; those of the others do.\n"
)
PER_FORWARD = (
    "`next token` is ordinary greedy decoding with the same weights; the others fill masks. Tokens per "
    "forward, averaged over the tasks: {pace}.\n"
)
STEPS = (
    "By the number of steps from noise to text, one forward each. The last column is the medoid of eight "
    "candidates of sixteen steps at temperature 0.1, the others one text at 0.01. `correct` are sentences "
    "made by rule, `correct (stories)` sentences of held-out stories.\n"
)
AGAINST = (
    "In percent of the tested tokens, for held-out stories and held-out problems, four tokens drafted per "
    "round; on stories {greedy:.2f} tokens per target forward greedily, {sampled:.2f} at temperature 1.\n"
)
RANKED = (
    "In percent of pairs, on {ranked} prefixes from held-out stories: how often the true continuation has "
    "the higher score, by the ranker and by the mean log-probability that `{target}` gives it. 50 is chance. "
    "Sampled texts have top-p 0.9, and the same length as the true continuation.\n"
)
DEPTHS = "KL(p || q) in nats on held-out stories, through this lens and without one (the logit lens).\n"
MASKED = (
    "KL(full || masked) in nats at the last 64 tokens of held-out stories and of new problems, read as in "
    "decoding; `kept` is the share of channels. `as many per head`: as many as the head learned to keep.\n"
)
LENGTHS = (
    "Mean number of drafted tokens that the target accepts per round of up to 32, for held-out stories and "
    "problems: `aligned` is this model, `plain` the one that it was made from.\n"
)
CHAINS = (
    "With greedy decoding, means over held-out stories and problems: tokens per target forward, drafted "
    "tokens per token of text, and the share of drafted tokens that was accepted, for chains of fixed and of "
    "predicted length.\n"
)
FILTERED = (
    "On held-out problems and stories, canvases of {canvas} tokens: `forwards` per text, the share of "
    "problems that are `solved`, and of texts that equal those with one token per forward (`same text`).\n"
)
GUESSES = (
    "In percent, along texts that the target writes: `depth k`: how often the best guess k tokens beyond the "
    "next one is right, given a right path; `temperature 1`: how often a token sampled at depth 1 would be "
    "accepted on sampled text; `accepted x 100`: mean accepted length under greedy decoding, times 100.\n"
)


def write(folder: Path) -> None:
    """Writes README.md into the folder of a shipped model."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    measured = sections(folder, facts)
    warning = ALONE if "data" in facts else WARNING
    lines = [*front(folder, facts), *measured, data(facts), warning]
    files.write(folder / "README.md", "\n".join(lines))


def data(facts: dict) -> str:
    """The section on training data: `data` or `stories` of its facts, otherwise the family's mix with
    problems.
    """
    if "data" in facts:
        return f"## Data\n- {facts['data']}\n"
    files = facts.get("stories")
    lines = [f"- {file}: {SOURCES.get(file, SNAKES)}" for file in files or STORY_MIX]
    return "\n".join(["## Data", *lines, "" if files else PROBLEMS])


def sections(folder: Path, facts: dict) -> list[str]:
    """What was measured, one section for each measurement."""
    result = []
    if (folder / "sample.txt").exists():
        quote = (folder / "sample.txt").read_text("utf-8").strip().replace("\n", "\n> ")
        result.append(f"## A sample (temperature 0.8, top_p 0.9)\n> {quote}\n")
    for file, section in SECTIONS.items():
        if measured := left(folder, file):
            result += section(measured, facts)
    if guessed := left(folder, "acceptance.json"):
        result.append(guesses_section(folder.name, guessed))
    if folder.name == TARGET:
        others = {draft: left(folder.parent / draft, "acceptance.json") for draft in DRAFTS}
        result += [accepted(draft, numbers) for draft, numbers in others.items() if numbers]
    return result


def solved(measured: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """How many tasks are solved, as a section."""
    return [f"{SOLVED}\n{explained_solved(measured, facts)}\n{table(measured)}\n"]


def word_errors(rates: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """Word error rates, as a section."""
    return [f"## Mean word error rates, in percent\n{table(rates)}\n"]


def rewarded(rewards: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """What a model changes in the reward, as a section."""
    explained = REWARDS.format(**facts["compared"])
    return [f"## What it changes in the reward\n{explained}\n{table(rewards, '{:.3f}'.format)}\n"]


def ranked(ranks: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """How often the true continuation is ranked first, as a section."""
    explained = RANKED.format(ranked=facts["ranked"], target=TARGET)
    return [f"## The true continuation, against …\n{explained}\n{table(ranks)}\n"]


def plain(title: str, explained: str, number: str | None) -> Section:
    """The section of a measurement that is a table and a sentence."""

    def section(rows: dict[str, dict[str, float]], facts: dict) -> list[str]:
        numbers = table(rows, number.format) if number else table(rows)
        return [f"## {title}\n{explained}\n{numbers}\n"]

    return section


def fragments(rounds: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """What rounds that draft whole fragments cost, as a section."""
    return [f"## What whole fragments cost\n{ROUNDS}\n{rounds_table(rounds)}\n"]


def steered(plans: dict[str, dict], facts: dict) -> list[str]:
    """Whether topics steer, and whether stories cover them, as a section."""
    steers, covered = (table(plans[part], "{:.2f}".format) for part in ("topics", "coverage"))
    sheets = "<e>" in facts["tokens"]  # the model that was trained on fact sheets
    begin = "held-out fact sheets" if sheets else "the first ones of held-out stories"
    explained = STEERED.format(begin=begin)
    return [f"## Whether topics steer\n{explained}\n{steers}\n\n{COVERED}\n{covered}\n"]


def calibrated(calibration: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """How well an acceptance is predicted, as a section."""
    rows = {name: {k: v for k, v in row.items() if k != "tested"} for name, row in calibration.items()}
    return [f"## Calibration of the predicted acceptance\n{PREDICTED}\n{table(rows)}\n"]


def masked(masks: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """What a mask of channels costs, as a section."""
    picture = "![Alphas, and the channels that are kept](mask.svg)"
    return [f"## What the mask costs\n{picture}\n\n{MASKED}\n{table(masks, '{:.4f}'.format)}\n"]


def filtered(saved: dict[str, dict[str, float]], facts: dict) -> list[str]:
    """What a filter of canvases saves, as a section."""
    explained = FILTERED.format(canvas=facts["canvas"])
    return [f"## What it saves\n{explained}\n{table(saved, '{:.2f}'.format)}\n"]


def explained_solved(solved: dict[str, dict[str, float]], facts: dict) -> str:
    """How to read the accuracies, by the columns that were measured."""
    columns = {column for row in solved.values() for column in row}
    pace = ", ".join(f"{n:.2f} at delta {d}" for d, n in facts.get("tokens_per_forward_by_delta", {}).items())
    explained = CHOSEN.format(**facts) if "chosen" in columns else VOTES if "majority" in columns else ""
    explained = A_STEP if "1 per step" in columns else JUDGED.format(pace=pace) if pace else explained
    if per_forward := facts.get("tokens_per_forward"):
        rates = ", ".join(f"{rate:.2f} with {column}" for column, rate in per_forward.items())
        explained = PER_FORWARD.format(pace=rates)
    explained = HIDDEN if "nearest" in columns else explained
    explained = STEPS if "16 steps" in columns else explained
    explained = DRAWN.format(**facts["best_fixed"]) if "best fixed" in columns else explained
    return explained


def guesses_section(name: str, guessed: dict[str, dict]) -> str:
    """How often the guesses of a draft, or of a target's heads and exits, match."""
    if "greedy" in guessed["stories"]:
        return accepted(name, guessed)
    drafters = "".join(guesses(drafter, guessed) for drafter in guessed["stories"])
    return f"## How often guesses match the target\n{GUESSES}\n{drafters}"


def left(folder: Path, name: str) -> dict | None:
    """The content of a measurement's file in a folder; None if there is none."""
    path = folder / name
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def accepted(draft: str, measured: dict[str, dict[str, float]]) -> str:
    """The acceptance of one draft, as a section."""
    rows = {group: {k: row[k] for k in ("greedy", "temperature 1")} for group, row in measured.items()}
    stories = measured["stories"]
    against = AGAINST.format(greedy=stories["greedy tokens"], sampled=stories["temperature 1 tokens"])
    return f"## Acceptance of `{draft}` against `{TARGET}`\n{against}\n{table(rows)}\n"


def autodeco(measured: dict[str, dict[str, dict[str, float]]], facts: dict) -> list[str]:
    """What heads that set temperature and top-p gain, and what they set, as sections."""
    chosen = ", ".join(f"{group} {t:g}" for group, t in measured["chosen"].items())
    losses, nuclei = (table(measured[part], "{:.3f}".format) for part in ("losses", "nuclei"))
    return [
        f"## Temperatures against a single one\n{TEMPERED.format(chosen=chosen)}\n{losses}\n",
        f"## What the heads predict\n{NUCLEI}\n{nuclei}\n",
    ]


def guesses(drafter: str, measured: dict[str, dict[str, dict]]) -> str:
    """The numbers of one head or early exit."""
    rows = {}
    for group, drafters in measured.items():
        source = drafters[drafter]
        first = {f"depth {k}": ranks[0] for k, ranks in enumerate(source["accuracy"], 1)}
        rows[group] = {**first, "temperature 1": source["overlap"][0], "accepted x 100": source["accepted"]}
    return f"### {drafter}\n{table(rows)}\n\n"


def rounds_table(rounds: dict[str, dict[str, float]]) -> str:
    """Tokens per forward as a number, the rest in percent."""
    heading, line, *rows = table(rounds).split("\n")
    paces = [f"{row['tokens per forward']:.2f}" for row in rounds.values()]
    cells = (row.split(" | ") for row in rows)
    return "\n".join(
        [heading, line, *(" | ".join([c[0], p, *c[2:]]) for c, p in zip(cells, paces, strict=True))]
    )


def percent(share: float) -> str:
    """A share as a whole number."""
    return f"{100 * share:.0f}"


def table(rows: dict[str, dict[str, float]], form: Callable[[float], str] = percent) -> str:
    """Shares in percent (or another form) as a Markdown table; cells that a row lacks stay empty."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, row in rows.items():
        cells = (form(row[c]) if c in row else "" for c in columns)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def front(folder: Path, facts: dict) -> list[str]:
    """The beginning of every card: description, size, losses."""
    name, recipe = folder.name, folder.name.replace("-", "_")
    heads = "modules" in json.loads((folder / "config.json").read_text("utf-8"))
    size = f"{facts['parameters']:,} parameters"
    if heads:
        lines = [f"- {size} in addition to the target's; file format and loader: `docs/heads.md`"]
    elif (folder / "adapter_config.json").exists():
        lines = [
            f"- merged when loaded: {size}; this folder has {facts['trained_parameters']:,}, in float16 in "
            "the layout of PEFT (rank {rank}); the others are those of `{base}`".format(**facts),
            "- the base's tokenizer and {tokens}".format(tokens=" ".join(f"`{t}`" for t in facts["tokens"])),
        ]
    else:
        stored = "bfloat16 safetensors"
        if rounded_change.is_change(folder):
            base = rounded_change.base_of(folder).name
            stored = f"stored as the change of `{base}` in eight bits per number, merged when loaded"
        lines = [
            f"- {facts.get('architecture', 'Llama')} architecture, {size}, "
            f"context {facts.get('context', 512)}, {stored}",
            f"- {facts.get('tokens', WORDS)}",
        ]
    tokens_of = facts.get("tokens_of", "in rows of 256 and 512" if not heads else "")
    lines += [
        f"- trained on {facts['million_tokens']} million tokens {tokens_of}".rstrip(),
        f"- recipe: `explorer/training/recipes/{recipe}.py`",
    ]
    if name.startswith("llama"):
        lines.append(f"- measured by `python -m explorer measure {name} --corpus FOLDER`")
    if "held_out_perplexity" in facts:
        loss, perplexity = facts["held_out_loss"], facts["held_out_perplexity"]
        lines.append(f"- held-out loss {loss} nats per token (perplexity {perplexity})")
    if "loss_before" in facts:
        lines.append(f"- before this training, with its initial weights: {facts['loss_before']}")
    if "bits_per_byte" in facts:
        lines.append(f"- {facts['bits_per_byte']} bits per byte of held-out text")
    for head, count in facts.get("parameters_of", {}).items():
        lines.append(f"- {head}: {count:,} parameters, held-out loss {facts['held_out_losses'][head]}")
    if "held_out_right" in facts:
        lines.append(f"- right about {100 * facts['held_out_right']:.0f} % of held-out windows")
    areas = {question: area for question, area in facts.get("auc", {}).items() if area is not None}
    if areas:
        areas_text = ", ".join(f"`{question}` {area:.3f}" for question, area in areas.items())
        lines.append(f"- area under the ROC curve of each question on held-out problems: {areas_text}")
    described = about(name)
    return [
        f"---\nlicense: apache-2.0\nlibrary_name: transformers\nlanguage: en\n---\n# {name}\n",
        f"{described[:1].upper()}{described[1:]}\n" + (f"\n{BUILT}\n" if name.startswith("llama") else ""),
        *lines,
        f"\n{facts['note']}\n" if "note" in facts else "",
        *losses(folder),
    ]


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


# What a measurement left in a model's folder -> its sections, in their order. The last argument of `plain` is
# a number's form (None: in percent).
SECTIONS: dict[str, Section] = {
    "accuracies.json": solved,
    "word_error_rates.json": word_errors,
    "temperatures.json": autodeco,
    "rewards.json": rewarded,
    "ranks.json": ranked,
    "neighbours.json": plain("What neighbours gain", NEIGHBOURS, "{:.2f}"),
    "rollbacks.json": plain("What is thrown away", ROLLBACKS, None),
    "infilling.json": plain("What it fills in", FILLED, None),
    "adherence.json": plain("Whether summaries follow plans", ADHERED, "{:.2f}"),
    "clauses.json": plain("Which clauses it finds", CLAUSES, "{:.2f}"),
    "flaws.json": plain("What banning its label avoids", FLAWED, None),
    "modules.json": plain("Modules that are right", MODULES, None),
    "accepted-lengths.json": plain("How many drafted tokens are accepted", LENGTHS, "{:.2f}"),
    "levels.json": plain("How far each depth is from the output", DEPTHS, "{:.2f}"),
    "chains.json": plain("What a predicted length saves", CHAINS, "{:.2f}"),
    "streams.json": plain("Whether streams agree", AGREED, "{:.2f}"),
    "rounds.json": fragments,
    "plans.json": steered,
    "calibration.json": calibrated,
    "masks.json": masked,
    "filtered.json": filtered,
}
