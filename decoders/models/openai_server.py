"""One model on a server with OpenAI's API: requests, and checks of the answers.

No answer is trusted: one with another structure, unknown tokens or impossible probabilities is refused with a
message.
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from decoders.engine.served import ServerProblem
from decoders.refusal import said_by

KEY_VARIABLE = "DECODERS_API_KEY"  # its value is sent in the header, and used nowhere else
SECONDS = 60.0  # timeout of an answer
AT_ONCE = 8  # requests to one server that may be under way at the same time
IMPOSSIBLE = -9000.0  # vLLM writes -9999 for minus infinity
SLACK = 1e-3  # by which rounding may raise a probability, or a sum of them, above 1
TRIED_TOPS = (20, 5)  # tried if the server does not give the whole vocabulary
REFUSED = (None, 400, 404, 405, 422, 501)  # statuses of a server that runs but does not support a request


@dataclass
class OpenAIServer:
    """A model at an address. `top`: how many tokens each answer lists; None for the whole vocabulary."""

    base: str  # http://host:port/v1
    name: str  # its name on the server
    vocabulary: int
    top: int | None = None
    at_once = AT_ONCE

    def __post_init__(self) -> None:
        key = os.environ.get(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(timeout=SECONDS, headers=headers)

    def close(self) -> None:
        """Closes the connections."""
        self.http.close()

    def listed(self) -> dict[str, Any]:
        """The server's entry for this model. Raises ServerProblem if it does not list it."""
        entries = self.ask("GET", "/models")
        try:
            by_name = {entry["id"]: entry for entry in entries["data"]}
        except (KeyError, TypeError) as error:
            raise self.strange("its list of models has another form than OpenAI's") from error
        if self.name not in by_name:
            offered = ", ".join(map(repr, by_name)) or "none"
            raise ServerProblem(f"The server at {self.base} has no model {self.name!r}; it has: {offered}.")
        return by_name[self.name]

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Turns connection errors into ServerProblem with one sentence."""
        try:
            yield
        except httpx.TimeoutException:
            raise ServerProblem(
                f"The server at {self.base} took more than {SECONDS:.0f} s; try again."
            ) from None
        except (httpx.ReadError, httpx.RemoteProtocolError):
            raise self.cut_off() from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            raise ServerProblem(
                f"Nothing answers at {self.base}; start the server there, or correct host and port."
            ) from None

    def ask(self, method: str, path: str, body: dict | None = None) -> Any:
        """The answer to one request. Raises ServerProblem with one sentence."""
        with self.reached():
            reply = self.http.request(method, self.base + path, json=body)
        if reply.status_code != 200:
            raise self.refused(reply)
        try:
            return reply.json()
        except ValueError:
            raise self.strange("it is not JSON") from None

    def refused(self, reply: httpx.Response) -> ServerProblem:
        """The error for an answer with an error status."""
        status = reply.status_code
        if status in (401, 403):
            sentence = f"The server at {self.base} needs a valid key; put it into {KEY_VARIABLE}."
        elif status == 429:
            sentence = f"The server at {self.base} has too much to do (429); try again later."
        elif status >= 500:
            sentence = f"The server at {self.base} failed ({status}); its log says why."
        else:
            sentence = f"The server at {self.base} refuses this ({status}): {reason_in(reply)}"
        problem = ServerProblem(sentence)
        problem.status = status
        return problem

    def events(self, path: str, body: dict[str, Any]) -> Iterator[dict]:
        """The events of a stream as they arrive. Closing this iterator closes the connection, which ends the
        request. Raises ServerProblem with one sentence.
        """
        asked = self.http.stream("POST", self.base + path, json=body | {"stream": True})
        with self.reached(), asked as reply:
            if reply.status_code != 200:
                reply.read()
                raise self.refused(reply)
            for line in reply.iter_lines():
                if line and not line.startswith(("data:", ":", "event:", "id:")):
                    raise self.strange("it is not a stream of events")
                if (text := line.removeprefix("data:").strip()) == "[DONE]":
                    return
                if line.startswith("data:"):
                    yield self.event(text)
        raise self.cut_off()

    def event(self, text: str) -> dict:
        """Parses one event of a stream. Raises ServerProblem with one sentence."""
        try:
            event = json.loads(text)
        except ValueError:
            raise self.strange("it is not JSON") from None
        if not isinstance(event, dict):
            raise self.strange("there are no log-probabilities in it")
        if event.get("error"):
            raise ServerProblem(f"The server at {self.base} gave up: {reason_of(event)}")
        return event

    def checked(self, row: dict[int, float]) -> dict[int, float]:
        """A row without tokens of probability 0. Raises ServerProblem for impossible values."""
        if not all(isinstance(value, int | float) and value <= SLACK for value in row.values()):
            raise self.strange("it holds probabilities above 1")
        if any(not 0 <= token < max(self.vocabulary, len(row)) for token in row):
            raise self.strange("it names tokens that the tokenizer does not have")
        possible = {token: min(float(value), 0.0) for token, value in row.items() if value > IMPOSSIBLE}
        if math.fsum(map(math.exp, possible.values())) > 1 + SLACK:
            raise self.strange("its probabilities add up to more than 1")
        return possible

    def cut_off(self) -> ServerProblem:
        """The error for an answer whose end is missing."""
        return ServerProblem(f"The server at {self.base} broke off before its text was at an end; try again.")

    def strange(self, what: str) -> ServerProblem:
        """The error for an answer that cannot be used."""
        return ServerProblem(f"The answer of {self.base} cannot be used: {what}.")


def reason_in(reply: httpx.Response) -> str:
    """The reason in an error answer, shortened, as the end of a sentence."""
    try:
        return reason_of(reply.json())
    except (ValueError, AttributeError):
        return reason_of({"error": reply.text})


def reason_of(answer: dict) -> str:
    """The same for a parsed answer."""
    reason = answer.get("error", answer)
    text = reason.get("message", reason) if isinstance(reason, dict) else reason
    return f"{said_by(text)}."
