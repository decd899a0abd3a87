"""Calls a server function as the page does, without a server."""

import asyncio
import json
from typing import Any

from starlette.exceptions import HTTPException

from explorer.page.sessions import validated
from explorer.runs.scheduler import Runs


def ask(function: Any, request: Any) -> dict:
    """The answer that the page receives; `{refused, status}` for a request that no page can send."""
    try:
        return json.loads(asyncio.run(validated(Runs(lambda request: []), function)(request)))
    except HTTPException as error:
        return {"refused": error.detail, "status": error.status_code}
