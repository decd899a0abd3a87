"""Builds the site: `decoding-explorer site --out FOLDER`."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoders.refusal import Refusal
from explorer.runs.model_pool import Loader
from explorer.site import docs, experiments, front, lessons, methods, papers
from explorer.site.pages import Site, shared_files

DOCS = "docs/index.html"
LIMIT = 40_000_000  # bytes of a whole site


@dataclass(frozen=True)
class Parts:
    """What a site has: the names of its methods, lessons and experiments, and the slugs of the papers with a
    miniature; None: all.
    """

    methods: Sequence[str] | None = None
    lessons: Sequence[str] | None = None
    experiments: Sequence[str] | None = None
    miniatures: Sequence[str] | None = None
    documentation: bool = True


WHOLE = Parts()


def build(
    out: Path,
    address: str = "",
    parts: Parts = WHOLE,
    loader: Loader | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> Site:
    """Writes the site into the folder `out`.

    `address`: where it will be served; `loader`: the models that decode the lessons (default: the shipped
    pair); `say`: is told how far it is.
    """
    site = Site(out, address)
    if not parts.documentation:
        del site.sections[DOCS]
    with_methods = methods.build(site, parts.methods, say)
    say("lessons: loading the models")
    lessons.build(site, loader or lessons.default_loader(), parts.lessons, say)
    say("experiments")
    with_experiments = experiments.build(site, parts.experiments)
    papers.build(site, with_methods, with_experiments, parts.miniatures, say)
    if parts.documentation:
        say("documentation")
        docs.build(site)
    kinds = Counter(kind for _, _, kind, _ in site.index)
    counted = {"lessons": "lesson", "methods": "method", "experiments": "experiment", "papers": "paper"}
    front.build(
        site, {f"{section}.html": kinds[kind] for section, kind in counted.items()}, "beam" in with_methods
    )
    shared_files(site)
    return site


def size(out: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def command(options: argparse.Namespace) -> None:
    """Builds the whole site and says how large it is. Raises Refusal with one sentence if `--out` holds
    something else than a site.
    """
    out = options.out
    if out.exists() and (
        not out.is_dir() or any(out.iterdir()) and not (out / "shared" / "site.css").exists()
    ):
        raise Refusal(f"{out} holds other files; name a new folder, or an empty one.")
    if not (documentation := docs.available()):
        print("Without the documentation, which needs a checkout with mkdocs.", file=sys.stderr)
    build(out, options.address or "", Parts(documentation=documentation), say=progress)
    progress("")
    print(f"{size(out) / 1e6:.1f} MB in {out}; open {out / 'index.html'}, or put the folder on any web host.")


def progress(words: str) -> None:
    """Shows on a terminal how far it is, on one line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
