"""The documentation as a part of the site: mkdocs builds it from a checkout, with a policy on every page."""

import re

from decoders.packages import assets
from explorer.export.replay_page import hashed
from explorer.site.pages import Site

CHECKOUT = assets().parent
POLICY = (
    "default-src 'none'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"
)
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def available() -> bool:
    """Whether the documentation can be built here: only a checkout with mkdocs has it."""
    try:
        import mkdocs  # noqa: F401
    except ImportError:
        return False
    return (CHECKOUT / "mkdocs.yml").exists()


def build(site: Site) -> None:
    """Builds the documentation into the folder docs, and adds its pages to the search."""
    from mkdocs.commands.build import build as built
    from mkdocs.config import load_config

    folder = site.out.resolve() / "docs"
    config = load_config(str(CHECKOUT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.extra["homepage"] = "../index.html"
    built(config)
    # For people who debug the theme, and for searching other languages.
    for path in (*folder.rglob("*.map"), *folder.glob("assets/javascripts/lunr/**/*.js")):
        path.unlink()
    for path in sorted(folder.rglob("*.html")):
        text = path.read_text("utf-8")
        path.write_text(with_policy(text), "utf-8")
        if path.name != "404.html":
            title = re.search(r"<title>(.*?)(?: - Decoding Explorer)?</title>", text)[1]
            heads = " ".join(re.findall(r'<h[23] id="([^"]*)"', text)).replace("-", " ")
            site.index.append(
                [title, path.relative_to(site.out.resolve()).as_posix(), "documentation", heads]
            )


def with_policy(page: str) -> str:
    """A page that may run its own scripts and ask no other host."""
    hashes = " ".join(dict.fromkeys(map(hashed, INLINE.findall(page))))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(hashes=hashes)}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{meta}', 1)
