"""The models that come with the project, and the recipes that trained them.

Imports torch only to train and to measure.
"""

import argparse
import ast
import json
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from decoders import packages
from decoders.models.catalog import SHIPPED, kind
from decoders.models.names import resolve
from decoders.refusal import Refusal

TRAINING = Path(__file__).resolve().with_name("training")
RECIPES = TRAINING / "recipes"
WORDS = {
    "model": "target",
    "draft": "draft model",
    "texts": "texts",
    "out": "folder",
}  # what the option asks for
DISTILLED = "llama-tiny-draft-distilled"  # a recipe with extra options
FACTS = ("parameters", "million_tokens", "held_out_loss", "greedy_acceptance")
# heads that users can train on their own models (training/recipes/own_heads.py), and what each needs besides
# the target
OWN_HEADS = {
    "acceptance": ("draft", "texts"),
    "judge": ("draft",),
    "outlook": ("draft", "texts"),
    "kangaroo": ("texts",),
}


def rows() -> dict:
    """The recipes that are rows of a table (`training/rows/`), by the names of their models."""
    return script("rows.table").ROWS


def recipes() -> list[str]:
    """The names of the models that can be trained."""
    paths = [*RECIPES.glob("llama_tiny*.py"), *RECIPES.glob("tiny_*.py")]
    return sorted([*rows(), *(path.stem.replace("_", "-") for path in paths)])


def recipe_file(name: str) -> Path:
    """The file of a model's recipe: the table with its row, or one of its own."""
    if row := rows().get(name):
        return TRAINING / "rows" / f"{type(row).__module__.rpartition('.')[2]}.py"
    return RECIPES / f"{name.replace('-', '_')}.py"


def about(name: str) -> str:
    """A description of a model: that of its row, or the first paragraph of its recipe's docstring, after the
    name.
    """
    if row := rows().get(name):
        return row.about
    recipe = recipe_file(name)
    if not recipe.exists():
        return ""
    docstring = ast.get_docstring(ast.parse(recipe.read_text("utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split()).partition(": ")[2]


def models() -> list[dict]:
    """Each shipped model: name, kind, about, bytes on disk, and all facts from its training and its
    measurements. Those of `FACTS` are always present, None where they were not measured.
    """
    shipped = []
    for config in sorted(SHIPPED.glob("*/config.json")):
        folder = config.parent
        facts = json.loads((folder / "facts.json").read_text("utf-8"))
        known = {
            "name": folder.name,
            "kind": kind(json.loads(config.read_text("utf-8"))),
            "about": about(folder.name),
            "bytes": sum(path.stat().st_size for path in folder.iterdir()),
        }
        shipped.append({**known, **dict.fromkeys(FACTS), **facts})
    return shipped


def described(model: dict) -> str:
    """The facts of one model in two lines; facts that were not measured are left out."""
    facts = [model["kind"], f"{model['parameters'] / 1e6:.2f} M parameters", f"{model['bytes'] / 1e6:.1f} MB"]
    if model["million_tokens"] is not None:
        facts.append(f"{model['million_tokens']:g} M tokens read")
    if model["held_out_loss"] is not None:
        facts.append(f"held-out loss {model['held_out_loss']:.3f}")
    if model["greedy_acceptance"] is not None:
        facts.append(f"greedy acceptance {model['greedy_acceptance']:.3f}")
    return f"{model['name']}: {' · '.join(facts)}\n    {model['about']}"


def list_models(options: argparse.Namespace) -> None:
    """Prints the shipped models, or what the named ones will take, as one JSON list or as text. Raises
    Refusal with one sentence.
    """
    if options.names:
        from decoders.models.memory_estimate import footprint  # on demand: imports torch

        parts = [footprint(name, options.dtype, options.device) for name in options.names]
        text = json.dumps([asdict(part) for part in parts]) if options.json else None
        print(text or "\n".join(part.sentence() for part in parts))
        return
    shipped = models()
    if options.json:
        print(json.dumps(shipped))
        return
    for model in shipped:
        print(described(model))
    print(f"{len(shipped)} models, {sum(model['bytes'] for model in shipped) / 1e6:.1f} MB together")


def train(options: argparse.Namespace) -> None:
    """Runs the recipe `options.recipe`, which gets corpus, work and million_tokens, or trains one of
    OWN_HEADS on the user's own models. Raises Refusal with one sentence if there is no such recipe or an
    option that it needs is missing.
    """
    name = options.recipe.replace("_", "-")
    if options.million_tokens is not None and not options.million_tokens > 0:
        raise Refusal(f"--million-tokens must be above 0, not {options.million_tokens:g}.")
    if name in OWN_HEADS:
        check_own_head(name, options)
        script("recipes.own_heads").main(options)
        return
    if name not in recipes():
        raise Refusal(
            f"There is no recipe {options.recipe!r}, and no such head for your own models "
            f"({', '.join(OWN_HEADS)}); choose one of: {', '.join(recipes())}."
        )
    if (options.divergence or options.on_policy) and name != DISTILLED:
        raise Refusal(f"--divergence and --on-policy are options of {DISTILLED}; leave them out.")
    for option in ("model", "draft"):
        if (given := getattr(options, option)) is not None:
            raise Refusal(f"The recipe {name} trains a shipped model; leave --{option} {given} out.")
    if options.corpus is None:
        raise Refusal(f"The recipe {name} reads a corpus; name its folder with --corpus.")
    check_corpus(options.corpus)
    script("recipe").run(name, options)


def check_own_head(name: str, options: argparse.Namespace) -> None:
    """Raises Refusal with one sentence if an option that training this head needs is missing, or if a draft
    is named that it does not use.
    """
    for needed in ("model", *OWN_HEADS[name], "out"):
        if getattr(options, needed) is None:
            raise Refusal(f"To train the head {name}, name its {WORDS[needed]} with --{needed}.")
    if options.draft is not None and "draft" not in OWN_HEADS[name]:
        raise Refusal(f"The head {name} is trained without a draft model; leave --draft {options.draft} out.")
    for model in (options.model, options.draft):
        if model is not None:
            resolve(model)


def measure(options: argparse.Namespace) -> None:
    """Measures the models `options.names`, or all of them, and writes all cards. Raises Refusal with one
    sentence if there is no such model or corpus.
    """
    check_corpus(options.corpus)
    script("evaluation.measure").main(options)


def check_corpus(corpus: Path) -> None:
    """Raises Refusal with one sentence unless the folder contains stories."""
    if not (corpus / "stories").is_dir():
        raise Refusal(f"The corpus {str(corpus)!r} has no folder 'stories'; name one that has it.")


def script(name: str) -> ModuleType:
    """A module of `explorer.training`, imported on demand because it imports torch."""
    return packages.module(f"explorer.training.{name}")
