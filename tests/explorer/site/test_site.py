"""The static pages as files: their links, their policy, what each carries, and what is shared."""

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

import pytest

from decoders.refusal import Refusal
from explorer.cli_options import parser
from explorer.export import page_files
from explorer.site import build as builder
from explorer.site.docs import with_policy
from tests.helpers.small_site import small_site

LOADED = {"script": "src", "img": "src", "link": "href"}


class Page(HTMLParser):
    """What a page loads, where it leads, its ids, and its metadata."""

    def __init__(self, path: Path):
        super().__init__()
        self.loads, self.leads, self.ids, self.meta = [], [], [], {}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if source := given.get(LOADED.get(tag)):
            self.loads.append(source)
        if given.get("data-script"):
            self.loads.append(given["data-script"])
        if tag == "a":
            self.leads.append(given["href"])
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "meta":
            name = given.get("name") or given.get("property") or given.get("http-equiv")
            self.meta[name] = given.get("content")


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    small_site(folder)
    return folder


@pytest.fixture(scope="module")
def pages(out) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(out.rglob("*.html"))}


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_another_host(out, pages):
    assert {path.relative_to(out).as_posix() for path in pages} == {
        "index.html",
        "methods.html",
        "methods/beam.html",
        "methods/speculative.html",
        "lessons.html",
        "lessons/draft-trees.html",
        "experiments.html",
        "experiments/draft-length.html",
        "papers.html",
    }
    for path, page in pages.items():
        for address in page.loads:
            assert (path.parent / address).is_file(), (path, address)
        for address in page.leads:
            if address.startswith(("https://", "http://")):
                continue
            file, place = urldefrag(address)
            target = (path.parent / file).resolve() if file else path.resolve()
            assert target.is_file(), (path, address)
            assert not place or place in pages[next(p for p in pages if p.resolve() == target)].ids
        assert len(page.ids) == len(set(page.ids)), path


def test_a_policy_allows_the_sites_own_files_and_one_inline_script(pages):
    for path, page in pages.items():
        policy = page.meta["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-")
        assert "http" not in policy and "unsafe-eval" not in policy
        inline = re.findall(r"<script>(.*?)</script>", path.read_text("utf-8"), re.DOTALL)
        assert inline == [page_files.THEME]


def test_pages_are_described_for_link_previews(out, pages):
    for path, page in pages.items():
        where = path.relative_to(out).as_posix()
        assert page.meta["og:url"] == f"https://example.org/explorer/{where}"
        picture = page.meta["og:image"].removeprefix("https://example.org/explorer/")
        assert (out / picture).is_file()
        assert page.meta["description"] == page.meta["og:description"] and page.meta["og:title"]
    titles = [page.meta["og:title"] for page in pages.values()]
    assert len(set(titles)) == len(titles)


def test_a_page_carries_its_first_picture_and_fetches_the_rest(out):
    text = (out / "methods/speculative.html").read_text("utf-8")
    (first,) = re.findall(r"id='explorer-first'>([^<]+)<", text)
    begun = json.loads(gzip.decompress(base64.b64decode(first)))
    assert begun["saved"] and begun["example"]["answer"]["lanes"][0]["ops"]
    assert begun["prompts"] == []  # of no use where nothing can be decoded
    beside = (out / "methods/data/speculative.rest.js").read_text("utf-8")
    (packed,) = re.findall(r'^document\.getElementById\("explorer-rest"\)\.textContent="([^"]+)";\n$', beside)
    rest = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert {"lanes", "nodes", "knobs"} <= set(rest)
    assert rest["knobs"][0]["knobs"]  # the sliders of What if compute with what the page carries


def test_the_first_visit_of_the_front_page_is_small(out):
    files = ["index.html", *(f"shared/{name}" for name in ("site.css", "site.js", "player.js", "front.js"))]
    assert sum((out / file).stat().st_size for file in files) < 400_000
    assert builder.size(out) < 6_000_000


def test_the_search_finds_every_page_and_every_paper(out, pages):
    text = (out / "shared/search.js").read_text("utf-8")
    index = json.loads(text.removeprefix("ExplorerPage.index=").removesuffix(";\n"))
    found = {urldefrag(path)[0] for _, path, _, _ in index}
    assert found == {path.relative_to(out).as_posix() for path in pages} - {"index.html"}
    assert sum(kind == "paper" for *_, kind, _ in index) == 193


def test_the_documentations_own_scripts_are_allowed_by_their_hashes():
    page = with_policy('<head><meta charset="utf-8"><script>one()</script></head><script>two()</script>')
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.count("'sha256-") == 2 and "http" not in policy


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    options = parser().parse_args(["site", "--out", str(tmp_path)])
    with pytest.raises(Refusal, match="holds other files"):
        builder.command(options)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
