"""What all pages of the site share: head, header, footer, styles, scripts and the search index.

Every page works from a web host and from disk. Its Content-Security-Policy allows the files of the site and
no request to another host.
"""

import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decoders import files
from explorer.export import page_files, palette
from explorer.export.replay_page import SAVED, hashed, plotly
from explorer.markup import Html, h, joined

NAME = "Decoding Explorer"
FOLDER = page_files.ASSETS / "web" / "site"
FIRST = ("base.js", "files.js", "carried.js")  # what the scripts of all pages use
PREVIEW = "shared/preview.png"
SMALLEST = 9  # level of compression: what is written once is fetched often
SECTIONS = {
    "lessons.html": "Lessons",
    "methods.html": "Methods",
    "experiments.html": "Experiments",
    "papers.html": "Papers",
    "docs/index.html": "Documentation",
}
POLICY = (
    "default-src 'none'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'"
)


@dataclass
class Site:
    """A folder of pages. `address`: where it will be served, "" if that is not known: link previews need it.
    `sections`: the sections that this site has; `index`: what the search finds, `[title, path, kind, words]`;
    `common`: what pages with lanes begin with, see replays.py.
    """

    out: Path
    address: str = ""
    sections: dict[str, str] = field(default_factory=lambda: dict(SECTIONS))
    index: list[list[str]] = field(default_factory=list)
    common: dict[str, Any] = field(default_factory=dict)

    def write(self, path: str, content: str | bytes) -> None:
        """Writes a file of the site, and its folder."""
        (self.out / path).parent.mkdir(parents=True, exist_ok=True)
        files.write(self.out / path, content)

    def page(
        self,
        path: str,
        title: str,
        says: str,
        *body: Html,
        scripts: tuple[str, ...] = (),
        carried: dict[str, bytes] | None = None,
        apart: dict[str, bytes] | None = None,
        kind: str = "",
        words: str = "",
    ) -> None:
        """Writes a page.

        `says`: its description; `scripts`: shared scripts besides those of every page; `carried`: compressed
        data in the page itself; `apart`: data in scripts beside it, which are fetched when they are needed.
        A page with a `kind` is found by the search, under its title, its description and `words`.
        """
        if kind:
            self.index.append([title, path, kind, " ".join(f"{says} {words}".split())])
        root = "../" * path.count("/")
        plotly_js = {"plotly": f"{root}shared/plotly.js"} if {"page.js", "figures.js"} & {*scripts} else {}
        parts = [
            Html("<!doctype html>\n<html lang='en' data-root='" + root + "'>"),
            self.head(path, title, says, root, scripts),
            Html("\n<body class='site'>"),
            self.header(path, root),
            *body,
            footer(),
            *(
                h("script", {"type": "text/plain", "id": f"explorer-{name}"}, base64.b64encode(blob).decode())
                for name, blob in (carried or {}).items()
            ),
            *(
                h("script", {"type": "text/plain", "id": f"explorer-{name}", "data-script": script})
                for name, script in {**plotly_js, **self.beside(path, apart or {})}.items()
            ),
            Html("</body></html>\n"),
        ]
        self.write(path, joined(parts))

    def beside(self, path: str, blobs: dict[str, bytes]) -> dict[str, str]:
        """Writes data as scripts in a folder beside a page; name -> address as this page has it."""
        folder, _, page = path.rpartition("/")
        stem, addresses = page.removesuffix(".html"), {}
        for name, blob in blobs.items():
            addresses[name] = f"data/{stem}.{name}.js"
            self.write(os.path.join(folder, addresses[name]), data_script(name, blob))
        return addresses

    def head(self, path: str, title: str, says: str, root: str, scripts: tuple[str, ...]) -> Html:
        """The head of a page, with what a link preview shows."""
        whole = title if title == NAME else f"{title} · {NAME}"
        policy = POLICY.format(hashes=f"{hashed(page_files.THEME)} {plotly()[1]}")
        address = self.address.rstrip("/") + "/" if self.address else ""
        shown = {
            "og:type": "website",
            "og:site_name": NAME,
            "og:title": title,
            "og:description": says,
            "og:image": (address or root) + PREVIEW,
        } | ({"og:url": address + path} if address else {})
        return h(
            "head",
            "",
            h("meta", {"charset": "utf-8"}),
            h("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
            h("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
            h("title", "", whole),
            h("meta", {"name": "description", "content": says}),
            *(h("meta", {"property": name, "content": content}) for name, content in shown.items()),
            h("meta", {"name": "twitter:card", "content": "summary_large_image"}),
            h("link", {"rel": "icon", "href": f"{root}shared/icon.svg"}),
            h("link", {"rel": "stylesheet", "href": f"{root}shared/site.css"}),
            Html(f"<script>{page_files.THEME}</script>"),
            *(h("script", {"defer": True, "src": f"{root}shared/{name}"}) for name in ("site.js", *scripts)),
        )

    def header(self, path: str, root: str) -> Html:
        """The row at the top: the name, the sections, search and theme."""
        section = path.split("/")[0].removesuffix(".html")
        links = [
            h("a", {"href": root + file, "aria-current": file.startswith(section) and "true"}, title)
            for file, title in self.sections.items()
        ]
        press = {"type": "button", "aria-label": "Switch between light and dark", "title": "Light or dark"}
        find = {
            "type": "search",
            "placeholder": "Search",
            "aria-label": "Search this site",
            "maxlength": 200,
            "autocomplete": "off",
            "data-site": "search",
        }
        return h(
            "header",
            "site-head",
            h("a", {"class": "site-skip", "href": "#main"}, "Skip to the content"),
            h("a", {"class": "site-name", "href": f"{root}index.html"}, NAME),
            h("nav", {"aria-label": "Sections"}, *links),
            h("div", "site-tools", h("input", find), h("button", press | {"data-site": "theme"}, "◐")),
            h("ul", {"class": "site-found", "data-site": "found", "hidden": True}),
            h("p", {"class": "dp-unseen", "role": "status", "data-site": "count"}),
        )


def footer() -> Html:
    """The last lines of every page."""
    return h(
        "footer",
        "site-foot",
        h("p", "", "Every replay is a recorded run. Nothing on this site is computed by a server."),
    )


def data_script(name: str, blob: bytes) -> str:
    """A script that puts compressed data into the element that a page has for it."""
    return f'document.getElementById("explorer-{name}").textContent="{base64.b64encode(blob).decode()}";\n'


def shared_files(site: Site) -> None:
    """Writes the files that all pages share, once all pages are known: the search index is one of them."""
    page_js, saved_js = page_files.page_scripts(), sorted(SAVED.glob("*.js"))
    own = {path.name: path for path in sorted(FOLDER.glob("*.js"))}
    every = [*page_js, *saved_js]
    first = [next(path for path in every if path.name == name) for name in FIRST]
    scripts = {
        "site.js": [*first, own["site.js"]],
        "player.js": page_files.drawing_scripts(),
        "front.js": [own["front.js"]],
        "figures.js": [own["figures.js"]],
        "method-map.js": [path for path in page_js if path.name == "method-map.js"],
        "page.js": [
            *(path for path in page_js if path not in first),
            own["place.js"],
            *page_files.drawing_scripts(),
            *(path for path in saved_js if path not in first),
        ],
    }
    before = {"page.js": f"ExplorerPage.common={json.dumps(site.common, ensure_ascii=False)};\n"}
    for name, paths in scripts.items():
        site.write(f"shared/{name}", before.get(name, "") + "".join(map(page_files.text, paths)))
    sheets = [*page_files.sheets(), SAVED / "saved.css", FOLDER / "site.css"]
    site.write("shared/site.css", "\n".join([palette.css(), *map(page_files.text, sheets)]))
    site.write("shared/icon.svg", page_files.text(FOLDER / "icon.svg"))
    site.write(PREVIEW, (page_files.ASSETS / "web" / "preview.png").read_bytes())
    site.write("shared/plotly.js", data_script("plotly", plotly()[0]))
    site.write("shared/search.js", f"ExplorerPage.index={json.dumps(site.index, ensure_ascii=False)};\n")


def heading(title: str, *below: Html | str) -> Html:
    """The beginning of a page's content."""
    return joined([h("h1", "", title), *below])


def content(*children: Html, wide: bool = False) -> Html:
    """The content of a page without lanes."""
    look = {"id": "main", "class": "explorer site-main wide" if wide else "explorer site-main"}
    return h("main", look, *children)
