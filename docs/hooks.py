"""Makes the pages of the website that are derived from code and data, when `mkdocs` builds it (`make docs`).

The front page is README. The reference has strategies, each with a picture of its recorded run, models,
commands, endpoints, parameters and experiments; none of it is stored. `reference()` is the list of its pages.
"""

import argparse
import html
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs starts in any folder

from decoders.registry import BADGES, FAMILIES, strategies  # noqa: E402
from decoders.strategy import Parameter, Strategy  # noqa: E402
from explorer import experiments, shipped  # noqa: E402
from explorer.catalog import method_cards, origins  # noqa: E402
from explorer.cli_options import parser  # noqa: E402
from explorer.experiments.groups import GROUPS  # noqa: E402

PICTURES, LOOKS = "pictures", ("light", "dark")  # a folder below the reference, and the themes
WIDE = "---\nhide: [toc]\n---\n"  # a page of one table


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the front page and the reference."""
    for name, made in (("index.md", front_page), *reference().items()):
        files.append(File.generated(config, name, content=made()))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Draws the pictures of the strategies."""
    folder = Path(config.site_dir, "reference", PICTURES)
    folder.mkdir(parents=True, exist_ok=True)
    for name in strategies():
        for look in LOOKS:
            (folder / f"{name}-{look}.svg").write_text(method_cards.picture(name, look), "utf-8")


def reference() -> dict[str, Callable[[], str]]:
    """File -> what makes its text."""
    families = {f"reference/{family}.md": lambda one=family: family_page(one) for family in FAMILIES}
    return families | {
        "reference/parameters.md": parameters_page,
        "reference/models.md": models_page,
        "reference/commands.md": commands_page,
        "reference/endpoints.md": endpoints_page,
        "reference/experiments.md": experiments_page,
    }


def front_page() -> str:
    """README without the settings of a Space; its links to files outside docs/ become their names."""
    text = (ROOT / "README.md").read_text("utf-8").split("\n---\n", 1)[1]
    return without_links_outside(re.sub(r"(\]\(|=\")docs/", r"\1", text))


def without_links_outside(text: str) -> str:
    """A page whose links to files of the repository outside docs/ are their words: the website lacks them."""
    text = re.sub(r"\[([^\]]+)\]\(([A-Z][A-Z.a-z]+)\)", r"`\1`", text)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)?notebooks/[^)]*\)", r"\1 (in the folder `notebooks/`)", text)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Pages of docs/ link to notebooks, too."""
    return without_links_outside(markdown)


def cell(text: object) -> str:
    """A text as a cell of a table."""
    return re.sub(r"([|<*_])", r"\\\1", str(text)).replace("\n", " ↵ ")


def rows(columns: tuple[str, ...], lines: Iterable[tuple]) -> str:
    """A table in Markdown; cells are Markdown already."""
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *(f"| {' | '.join(line)} |" for line in lines)])


def family_page(family: str) -> str:
    """All strategies of a family, from their declarations."""
    members = [one for one in strategies().values() if one.family == family]
    parts = [f"# {FAMILIES[family]}", "This page is generated from the declarations of the strategies."]
    return "\n\n".join([*parts, *map(strategy_section, members)]) + "\n"


def strategy_section(one: Strategy) -> str:
    """A strategy: what it does, what it promises, its papers and its parameters."""
    card = inspect.cleandoc(one.run.__doc__ or "")
    badge = one.badge(one.check({}))
    facts = [f"- With the defaults: {BADGES.get(badge, badge)}."] if badge else []
    if parent := origins.lineage().get(one.name, {}).get("parent"):
        facts.append(f"- Unlike `{parent}`, it {origins.lineage()[one.name]['differs'].rstrip('.')}.")
    facts.append(f"- Needs: {', '.join(one.needs)}.")
    for paper in origins.sources(one.name, one.papers):
        said = cell(origins.cited(paper))
        facts.append(f"- [{said}]({paper['link']})" if paper["link"] else f"- {said}")
    if shared := dict.fromkeys(p.group for p in one.parameters if p.group):
        facts.append(f"- Takes the shared [parameters](parameters.md) of *{'*, *'.join(shared)}*.")
    own = [p for p in one.parameters if not p.group]
    table = rows(("parameter", "default", "values", "what it does"), map(parameter_row, own)) if own else ""
    heading = f"## {one.title} {{ #{one.name} }}"
    return "\n\n".join(
        filter(None, [heading, f"`{one.name}`", card, recorded_run(one), "\n".join(facts), table])
    )


def recorded_run(one: Strategy) -> str:
    """The picture of a strategy's recorded run, which a browser loads when it comes near: one for each theme,
    in a box that scrolls.
    """
    known = method_cards.picture_facts(one.name)
    says = html.escape(f"{known['view']} of a run on the prompt: {known['prompt']}").replace("\n", "↵")
    pictures = (
        f'<img src="{PICTURES}/{one.name}-{look}.svg#only-{look}" alt="{says}" loading="lazy">'
        for look in LOOKS
    )
    return f'<div class="run">{"".join(pictures)}</div>'


def parameter_row(p: Parameter) -> tuple[str, ...]:
    """A parameter as cells."""
    return f"`{p.name}`", cell(p.default) or "(empty)", cell(p.allowed()), cell(p.help)


def parameters_page() -> str:
    """Every parameter, the strategies that have it, and whether `generate` has one of that name."""
    from transformers import GenerationConfig

    holders: dict[tuple[str, str], list[Strategy]] = {}  # one name may mean several things
    for one in strategies().values():
        for p in one.parameters:
            holders.setdefault((p.name, p.help), []).append(one)
    known, everywhere = vars(GenerationConfig()), len(strategies())

    def lines() -> Iterator[tuple]:
        for (name, says), having in sorted(holders.items(), key=lambda item: item[0]):
            declared = next(p for p in having[0].parameters if p.name == name)
            links = ", ".join(f"[{one.name}]({one.family}.md#{one.name})" for one in having)
            who = links if len(having) <= 6 else f"{len(having)} of {everywhere}"
            group = f"*{declared.group}*: " if declared.group else ""
            values = f"{cell(declared.allowed())}; default {cell(declared.default) or 'empty'}"
            yield f"`{name}`", "yes" if name in known else "", group + who, values, cell(says)

    columns = ("parameter", "in `generate`", "strategies", "values", "what it does")
    says = "[generation_config.md](../generation_config.md) maps the options of `generate` to ours."
    return f"{WIDE}# Parameters\n\n{says}\n\n{rows(columns, lines())}\n"


def models_page() -> str:
    """The shipped models, with the facts of their training."""
    measured = ("parameters", "bytes", "million_tokens", "held_out_loss", "greedy_acceptance")

    def lines() -> Iterator[tuple]:
        for model in shipped.models():
            facts = ("" if model[fact] is None else f"{model[fact]:,}" for fact in measured)
            yield f"`{model['name']}`", model["kind"], *facts, cell(model["about"])

    columns = ("model", "kind", "parameters", "bytes", "million tokens read", "held-out loss")
    table = rows((*columns, "greedy acceptance", "what it is"), lines())
    return f"{WIDE}# Models\n\nGenerated from the facts stored with the weights.\n\n{table}\n"


def commands_page() -> str:
    """The commands with their options, from the parsers themselves."""
    import app

    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    says = "`python -m explorer COMMAND` in a checkout, `decoding-explorer COMMAND` if installed."
    parts = ["# Commands", says]
    for action in commands._choices_actions:
        says = f"{action.help[0].upper()}{action.help[1:]}."
        parts += [f"## {action.dest}", says, options(commands.choices[action.dest])]
    says = "`python app.py`, or `decoding-explorer` without a command."
    parts += ["## The page", says, options(app.options_parser())]
    return "\n\n".join(parts) + "\n"


def options(of: argparse.ArgumentParser) -> str:
    """The options of a parser as a table."""

    def lines() -> Iterator[tuple]:
        for one in of._actions:
            name = " ".join(filter(None, [", ".join(one.option_strings), str(one.metavar or "")]))
            if one.dest != "help":
                choices = f" ({', '.join(one.choices)})" if one.choices else ""
                yield f"`{name or one.dest}`", cell((one.help or "") + choices)

    return rows(("option", "what it does"), lines())


def endpoints_page() -> str:
    """The endpoints with their inputs, from the models that check each call."""
    from explorer.page.endpoints import INPUTS, PARAMETERS

    helps = dict(re.findall(r"^    (\w+): ((?:.|\n     +)+)", PARAMETERS, re.MULTILINE))
    parts = ["# Endpoints", "[api.md](../api.md) says how to call them from Python, curl and MCP."]
    for name, model in INPUTS.items():
        fields = [
            (
                f"`{field}`",
                "" if info.is_required() else f"`{info.default!r}`",
                cell(" ".join(helps[field].split())),
            )
            for field, info in model.model_fields.items()
        ]
        parts += [f"## /{name}", rows(("input", "default", "what it is"), fields) if fields else "No inputs."]
    return "\n\n".join(parts) + "\n"


def experiments_page() -> str:
    """What the shipped models answered, by group, from the stored answers."""
    answers = {answer["name"]: answer for answer in experiments.stored()}
    says = (
        "Each experiment is one question, with the answer of the shipped models. `python -m explorer "
        "experiment NAME` asks it of other models; the tab *Experiments* has tables and figures."
    )
    parts = ["# Experiments", says]
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            if answer := answers.get(name):
                parts.append(f"**{cell(answer['title'])}** (`{name}`): {cell(answer['finding'])}")
    return "\n\n".join(parts) + "\n"
