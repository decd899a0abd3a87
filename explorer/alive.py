"""Whether the app is there: one tiny address that a page asks when a call brought nothing.

It names this start of the app, so that a page can tell a restarted app from a lost network, and the version
of its page, since an open page of another version cannot use the app.
"""

import secrets

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ALIVE = "explorer-alive"
STARTED = secrets.token_hex(8)  # another one whenever the app is started


def routes(version: str) -> list[Route]:
    """For Gradio's app. `version`: see `explorer.page.layout.version`."""

    def alive(request: Request) -> Response:
        return JSONResponse({"started": STARTED, "version": version}, headers={"Cache-Control": "no-store"})

    return [Route(f"/{ALIVE}", alive)]
