"""Examines a server that drafts: sends it the canaries, and reads what it counts before and after each. No
server says which tokens were drafted.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from decoders.engine.served import ServerProblem
from decoders.models import address
from decoders.models.openai_server import OpenAIServer
from decoders.refusal import Refusal
from decoders.trace.imports import metrics_text
from decoders.trace.imports.vllm_counts import LATEST, NO_DRAFT
from explorer.doctor.canaries import FILLER, KNOWN, LONG, OWN
from explorer.doctor.examining import Examination
from explorer.doctor.recorded import of_counted
from visualizers.analysis.draft_diagnosis import of_long_context

ANSWER = 64  # tokens that the server writes after each canary
REPEATS = 40  # of the filler, some 1,700 words
COUNTS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
PLACES = "num_accepted_tokens_per_pos"


def in_pieces(name: str) -> Iterator[tuple[int, int] | Examination]:
    """Examines the model at an address (`http://host:port/v1#name`): yields (canaries done, of all) after
    each, and finally the examination. Other requests to the server meanwhile are counted too.

    Raises Refusal with one sentence if it cannot be reached, or counts no drafts.
    """
    found = address.served(name)
    if not isinstance(found, address.Server):
        raise Refusal(f"{name} is not a server's address; write {address.FORM}.")
    server = OpenAIServer(found.base, found.model, 0)
    texts = [(name, text) for name, _, text, _ in KNOWN]
    texts += [(f"its own writing {at}", text) for at, text in enumerate(OWN, 1)] + [(LONG, FILLER * REPEATS)]
    counts = []
    try:
        before = counts_of(server)
        for done, (canary, text) in enumerate(texts, 1):
            body = {"model": server.name, "prompt": text, "max_tokens": ANSWER, "temperature": 0}
            server.ask("POST", "/completions", body)
            after = counts_of(server)
            counts.append((canary, difference(before, after)))
            before = after
            yield done, len(texts)
    except ServerProblem as error:
        raise Refusal(str(error)) from error
    finally:
        server.close()
    *short, (_, long) = counts
    drafted, accepted = (sum(one[name] or 0 for _, one in short) for name in COUNTS[1:])
    found = of_counted(counts)
    yield replace(
        found, findings=found.findings + of_long_context(drafted, accepted, long[COUNTS[1]], long[COUNTS[2]])
    )


def counts_of(server: OpenAIServer) -> dict[str, Any]:
    """The server's counts now; none if it has drafted nothing yet. Raises Refusal with one sentence if it
    does not count.
    """
    parts = urlsplit(server.base)
    url = f"{parts.scheme}://{parts.netloc}/metrics"
    with server.reached():
        reply = server.http.get(url)
    if reply.status_code != 200:
        raise Refusal(
            f"{url} answers {reply.status_code}; start the server with its metrics (llama-server: --metrics)."
        )
    try:
        found = metrics_text.read(reply.content)
    except Refusal as error:
        if str(error) == NO_DRAFT:
            return dict.fromkeys(COUNTS, 0) | {PLACES: [], "models": [], "over": ""}
        raise
    if found["over"] == LATEST:
        raise Refusal(
            "This server reports rates, not counts, so its canaries cannot be separated; examine a recording "
            "of it with --recorded."
        )
    return found


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What was counted in between."""
    found = {
        name: None if None in (before[name], after[name]) else after[name] - before[name] for name in COUNTS
    }
    earlier = before[PLACES] + [0] * len(after[PLACES])
    levels = [now - then for now, then in zip(after[PLACES], earlier, strict=False)]
    return found | {PLACES: levels, "models": after["models"], "over": after["over"]}
