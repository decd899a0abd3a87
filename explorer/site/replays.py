"""Pages with a recorded run: what is the same on all of them is written once."""

from decoders.trace.trace import Trace
from explorer.export.replay_page import replay_blobs
from explorer.export.run_file import pack
from explorer.markup import Html, h
from explorer.site.pages import SMALLEST, Site

SCRIPTS = ("page.js",)
# What a page with lanes begins with and that no run changes; shared/page.js has it.
COMMON = (
    "families",
    "start",
    "views",
    "added_views",
    "memory",
    "frames",
    "palette",
    "costs",
    "buttons",
    "standing",
    "limits",
)


def replay_page(
    site: Site,
    path: str,
    title: str,
    says: str,
    traces: list[Trace],
    setup: dict,
    intro: Html,
    *below: Html,
    lesson: dict | None = None,
    **searched: str,
) -> None:
    """Writes a page with lanes between `intro` and what is `below` them. `setup`, `lesson`: see
    `replay_page.replay_blobs`; `searched`: `kind` and `words` of `Site.page`.
    """
    _, blobs = replay_blobs(traces, setup, lesson)
    first = blobs.pop("first")
    site.common = {name: first.pop(name) for name in COMMON}
    lost = h("noscript", "", "This is a recorded run; it needs JavaScript to be drawn.")
    site.page(
        path,
        title,
        says,
        intro,
        h("div", {"id": "explorer", "class": "explorer saved"}, lost),
        *below,
        scripts=SCRIPTS,
        carried={"first": pack(first, level=SMALLEST)},
        apart={name: pack(blob, level=SMALLEST) for name, blob in blobs.items()},
        **searched,
    )
