"""A small site: two methods, a lesson of random models, an experiment; built in seconds."""

from pathlib import Path

from explorer.site.build import Parts, build
from explorer.site.pages import Site
from tests.helpers.ready_loader import ready_loader

PARTS = Parts(
    methods=("beam", "speculative"),
    lessons=("draft-trees",),
    experiments=("draft-length",),
    miniatures=(),
    documentation=False,
)


def small_site(out: Path) -> Site:
    """Builds it into a folder."""
    return build(out, "https://example.org/explorer", PARTS, ready_loader())
