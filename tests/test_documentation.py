"""README and docs/: code blocks run, tables name what there is, and the website is built strictly."""

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config

import app
import decoding_explorer
from decoders import registry
from decoders.limits import Limits
from decoders.registry import FAMILIES, strategies
from decoders.trace.imports.answer import MAX_TOKENS
from decoders.trace.imports.records import MAX_RECORDS
from decoders.trace.json_file import MAX_TRACE_BYTES
from explorer import shipped
from explorer.catalog import method_cards
from explorer.catalog.papers import papers
from explorer.cli import main
from explorer.cli_options import parser
from explorer.doctor.canaries import LONGEST
from explorer.lessons.lesson import lessons
from explorer.runs import MAX_LANES
from explorer.runs.validation import MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS
from explorer.text_file import MOST_BYTES
from tests.helpers.shipped_pair import PROMPTS, pair
from visualizers.registry import names
from visualizers.scene.view import VIEWS

ROOT = Path(__file__).resolve().parents[1]
PAGES = {path.relative_to(ROOT).as_posix(): path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))}
BLOCK = re.compile(r"(?:<!-- not run: (.+) -->\n)?^ *```(.*)\n((?:.*\n)*?) *```$", re.MULTILINE)
NOT_RUN = {  # page -> why blocks of it are only read: each needs what this test lacks
    "README.md": {"downloads a model": 1, "needs a server": 1},
    "docs/api.md": {"needs the running app": 3},
    "docs/command_line.md": {"takes minutes": 1, "takes minutes to hours": 1, "trains models": 1},
    "docs/deploy.md": {"takes minutes": 1, "needs a GPU": 1, "needs a server": 1, "needs Docker": 1},
    "docs/engines.md": {"needs a GPU": 1, "needs a server": 3, "needs vLLM": 2, "needs Ray": 1},
    "docs/heads.md": {"trains models": 3},
    "docs/opening.md": {"needs files of yours": 1},
}
EXPLORER = re.compile(r"(?:\S*python -m explorer|decoding-explorer(?= [a-z])) (.*)")
APP = re.compile(r"(?:python app\.py|decoding-explorer(?= --)) (.*)")


def blocks(page: str) -> list[tuple[str, str, str]]:
    """(why it is not run or "", language, code) of each block of a page."""
    return BLOCK.findall(PAGES[page].read_text("utf-8"))


def commands(code: str) -> list[str]:
    """The commands of a shell block, without comments; a backslash continues a line."""
    lines = (shlex.join(shlex.split(line, comments=True)) for line in code.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def test_all_blocks_name_a_language_and_few_are_not_run():
    assert {language for page in PAGES for _, language, _ in blocks(page)} <= {"python", "sh", "text", "yaml"}
    assert all(PAGES[page].read_text("utf-8").count("```") == 2 * len(blocks(page)) for page in PAGES)
    found = {page: dict(Counter(why for why, _, _ in blocks(page) if why)) for page in PAGES}
    assert {page: why for page, why in found.items() if why} == NOT_RUN


@pytest.fixture
def _views():
    """Those that a page registers end with it."""
    names()  # ours are registered before
    with patch.dict(VIEWS):
        yield


@pytest.mark.usefixtures("_views")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_code_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    """In their order, with one set of variables; commands are read by their own parsers first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_STRATEGIES", strategies())  # those of a page end with it
    target = pair()["target"]
    ids = torch.tensor([target.encode(PROMPTS[0])])
    scope = {"model": target.model, "tokenizer": target.tokenizer, "inputs": {"input_ids": ids}}
    for why, language, code in blocks(page):
        if language == "python":
            compiled = compile(code, page, "exec")
            if not why:
                exec(compiled, scope)
        elif language == "sh":
            for command in commands(code):
                check(command, why)


def check(command: str, why: str) -> None:
    """Runs a command of ours, unless `why` says that it is not run; of others, checks that what they name
    exists.
    """
    if ours := EXPLORER.match(command):
        given = shlex.split(ours[1])
        parser().parse_args(given)
        if not why:
            main(given)
    elif ours := APP.match(command):
        app.options_parser().parse_args(shlex.split(ours[1]))
    elif command.startswith("make "):
        assert re.search(rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    elif command.startswith("pip install -r "):
        assert (ROOT / command.split()[-1]).is_file()
    else:
        assert why, f"nothing checks {command!r}: say above its block why it is not run"


def test_readme_and_contributing_are_short():
    readme = PAGES["README.md"].read_text("utf-8")
    assert len(readme.encode()) <= 12_000 and len(readme.splitlines()) <= 150
    assert len(PAGES["CONTRIBUTING.md"].read_bytes()) <= 8_000


def test_the_overviews_name_what_is_registered_and_shipped():
    rows = re.findall(r"^\| `(\w+)` \|", PAGES["docs/strategies.md"].read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(strategies())
    first = re.findall(r"^\| (`.+?`) \|", PAGES["docs/models.md"].read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"`([\w-]+)`", " ".join(first))
    assert sorted(named) == [model["name"] for model in shipped.models()]


def test_the_limits_are_those_of_the_code():
    of = Counter(paper["status"] for paper in papers())
    page = " ".join(PAGES["docs/limits.md"].read_text("utf-8").split())
    for sentence in (
        f"Of {of.total()} papers on decoding, {of['card']} are described by a card and {of['miniature']} ",
        f"at most {MAX_LANES} lanes, {MAX_NEW_TOKENS} new tokens per lane and a prompt of "
        f"{MAX_PROMPT_CHARACTERS:,} characters; a lane ends after {Limits().max_seconds:g} s",
        f"long text has at most {LONGEST:,} tokens",
        f"{MOST_BYTES >> 20} MiB, {MAX_TRACE_BYTES >> 20} MiB unpacked; {MAX_TOKENS:,} tokens per answer; "
        f"{MAX_RECORDS:,} records",
    ):
        assert sentence in page


def test_the_teaching_plans_name_lessons_by_number_and_title():
    titles = {lesson["number"]: lesson["title"] for lesson in lessons().values()}
    plans = re.findall(r"[Ll]esson (\d+), \*(.+?)\*", PAGES["docs/teaching.md"].read_text("utf-8"))
    assert len(plans) >= 10 and all(titles[int(number)] == title for number, title in plans)


def test_links_outside_the_website_lead_to_files_and_their_headings():
    """Those of docs/ are checked where the website is built."""
    for page in PAGES:
        if "/" not in page:
            for link, anchor in re.findall(
                r"\]\((?!https:)([^)#]+)#?([^)]*)\)", PAGES[page].read_text("utf-8")
            ):
                assert (ROOT / link).exists(), (page, link)
                assert not anchor or anchor in anchors(ROOT / link), (page, link, anchor)


def anchors(path: Path) -> list[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.fixture(scope="module")
def website(tmp_path_factory):
    """The folder of the website; a warning would have ended its making. All strategies have the picture of
    one: tests of the cards draw each.
    """
    folder, one = tmp_path_factory.mktemp("website"), method_cards.picture("greedy", "light")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(method_cards, "picture", lambda name, look: one)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_the_website_is_built_strictly_and_asks_no_other_host(website):
    pages = list(website.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text("utf-8")
        assert not re.search(r"<(script|img|iframe|source)[^>]+src=\"(https?:)?//", text), page
        assert not re.search(
            r"<link[^>]+rel=\"(stylesheet|preconnect|preload)\"[^>]+href=\"(https?:)?//", text
        ), page
        shown = re.sub(r"<(pre|code)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search(r"^(- |\| |\d+\. )", shown, re.MULTILINE), (
            f"{page}: a list or table is plain text"
        )


def test_the_reference_is_made_from_the_declarations(website):
    for family in FAMILIES:
        text = (website / "reference" / f"{family}.html").read_text("utf-8")
        for one in strategies().values():
            assert (f'id="{one.name}"' in text) == (one.family == family)
            for picture in (f"pictures/{one.name}-light.svg", f"pictures/{one.name}-dark.svg"):
                assert (f'src="{picture}#only-' in text) == (one.family == family)
                assert (website / "reference" / picture).is_file()
    commands = (website / "reference" / "commands.html").read_text("utf-8")
    assert "--num-assistant-tokens" in commands and "--allow-origin" in commands
    endpoints = (website / "reference" / "endpoints.html").read_text("utf-8")
    assert "/strategies" in endpoints and "max_new_tokens" in endpoints


def test_citation_container_and_workflow_say_what_the_project_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == decoding_explorer.__version__
    (command,) = re.findall(r"^CMD (\[.+\])$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    name, *given = json.loads(command)
    assert name == "decoding-explorer" and app.options_parser().parse_args(given).models == "embedded"
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    assert {"run": "make test"} in workflow["jobs"]["test"]["steps"]
