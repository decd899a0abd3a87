"""A link as a QR code, for a lecture hall: a phone that scans it opens the page and runs the set-up.

The page makes the link (assets/web/page/link.js).
"""

import io

import segno

from decoders.refusal import Refusal
from explorer.access import LOOPBACK, authority, hostname
from explorer.page_requests import Link
from explorer.runs.validation import as_json

SETUP, RUN = "#setup=", "#run="  # how a link's fragment begins: the set-up is only shown, or runs at once
TOO_LONG = "This set-up is too long for a QR code; share the link."


def functions(runs, loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_qr(request: Link) -> str:
        """`{link}` gives `{svg}`."""

        async def made() -> dict:
            return {"svg": svg(request.link)}

        return await as_json(made())

    return [explorer_qr]


def svg(link: str) -> str:
    """The QR code of a link, as SVG; scanning it runs the set-up. Refusal if the link is too long."""
    out = io.BytesIO()
    try:
        code = segno.make(link.replace(SETUP, RUN, 1), error="l", micro=False)
    except segno.DataOverflowError as error:
        raise Refusal(TOO_LONG) from error
    code.save(out, kind="svg", scale=4, light="white", xmldecl=False, nl=False)
    return out.getvalue().decode()


def only_here(link: str) -> bool:
    """Whether the address of a link means the very device that opens it."""
    host = authority(link)
    return host is not None and hostname(host) in LOOPBACK
