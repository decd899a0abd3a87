"""Asks a server with OpenAI's completions endpoint for the next token's log-probabilities.

Prompts are lists of token ids, as vLLM, SGLang and TGI's successors take them, and tokens come back by id
(`return_tokens_as_token_ids`). Nothing that a server says is believed unseen: an answer of another shape, of
unknown tokens or with impossible probabilities is refused. Knows HTTP and token ids, no trees.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from decoders.engine.served import ServerProblem

KEY_VARIABLE = "DECODERS_API_KEY"  # whose value goes into the header, and nowhere else
SECONDS = 60.0  # that an answer may take
IMPOSSIBLE = -9000.0  # vLLM writes -9999 where the logarithm is minus infinity
SLACK = 1e-3  # by which rounding may lift a probability, or a sum of them, above 1
TRIED_TOPS = (20, 5)  # asked for where the whole vocabulary is not given
ALL = -1


@dataclass
class CompletionsClient:
    """One model of one server. `top`: how many tokens each answer names, None: the whole vocabulary."""

    base: str  # http://host:port/v1
    name: str  # as the server lists it
    vocabulary: int
    top: int | None = None
    tells_prompts: bool = True  # until it refuses to name tokens along a prompt

    def __post_init__(self) -> None:
        key = os.environ.get(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(timeout=SECONDS, headers=headers)

    def close(self) -> None:
        """Ends the connections."""
        self.http.close()

    def listed(self) -> dict[str, Any]:
        """What the server says of this model. Raises ServerProblem if it does not list it."""
        entries = self._ask("GET", "/models")
        try:
            by_name = {entry["id"]: entry for entry in entries["data"]}
        except (KeyError, TypeError) as error:
            raise self._strange("its list of models has another form than OpenAI's") from error
        if self.name not in by_name:
            offered = ", ".join(map(repr, by_name)) or "none"
            raise ServerProblem(f"The server at {self.base} has no model {self.name!r}; it has: {offered}.")
        return by_name[self.name]

    def find_top(self) -> None:
        """Finds out how many log-probabilities the server gives: all, if it may, else 20 or 5. Raises
        ServerProblem if it gives none.
        """
        refusal = None
        for count in (ALL, *TRIED_TOPS):
            try:
                (row,) = self._rows([[0]], count)
            except ServerProblem as error:
                refusal = error
                if error.status not in (None, 400, 422):
                    raise
                continue
            self.top = None if count == ALL and len(row) >= self.vocabulary else min(count, len(row))
            if self.top is None or self.top > 0:
                self.vocabulary = max(self.vocabulary, len(row))
                return
        raise ServerProblem(f"The server at {self.base} gives no log-probabilities. {refusal}")

    def next_tokens(self, texts: Sequence[list[int]]) -> list[dict[int, float]]:
        """After each of these texts: token -> log-probability. Raises ServerProblem with one sentence."""
        rows = self._rows(texts, ALL if self.top is None else self.top)
        for row in rows:
            if len(row) < (self.top or 0):
                raise self._strange(f"it names {len(row)} tokens where {self.top} were asked for")
        return rows

    def along(self, text: list[int], lengths: Sequence[int]) -> list[dict[int, float]] | None:
        """After the first n tokens of a text, for each n of `lengths`: token -> log-probability, from one
        reading of it. None if this server tells nothing of prompts. Raises ServerProblem with one sentence.
        """
        if not self.tells_prompts:
            return None
        count = ALL if self.top is None else self.top
        try:
            (choice,) = self._choices([text], count, prompt_logprobs=count)
            told = choice["prompt_logprobs"]
        except (KeyError, ServerProblem) as error:
            if isinstance(error, ServerProblem) and error.status not in (400, 422):
                raise
            self.tells_prompts = False
            return None
        try:  # the row of a place stands beside the token that follows it
            rows = [{int(t): one["logprob"] for t, one in row.items()} for row in told[1:]]
            rows.append({token_id(t): v for t, v in choice["logprobs"]["top_logprobs"][0].items()})
            wanted = [self._checked(rows[n - 1]) for n in lengths]
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise self._strange(
                "its log-probabilities of the prompt have another form than vLLM's"
            ) from error
        # the token that does follow is named even where it is not among the likeliest
        return [dict(sorted(row.items(), key=lambda one: -one[1])[: self.top]) for row in wanted]

    def _choices(self, texts: Sequence[list[int]], count: int, **more: int) -> list[dict]:
        """The choices of an answer in the order of these texts, one token each with `count` others."""
        body = {
            "model": self.name,
            "prompt": [list(text) for text in texts],
            "max_tokens": 1,
            "temperature": 0,
        }
        body |= {"logprobs": count, "return_tokens_as_token_ids": True}
        answer = self._ask("POST", "/completions", body | more)
        try:
            return sorted(answer["choices"], key=lambda choice: choice["index"])
        except (KeyError, TypeError) as error:
            raise self._strange("there are no log-probabilities in it") from error

    def _rows(self, texts: Sequence[list[int]], count: int) -> list[dict[int, float]]:
        choices = self._choices(texts, count)
        try:
            tops = [choice["logprobs"]["top_logprobs"][0] for choice in choices]
            rows = [{token_id(name): value for name, value in top.items()} for top in tops]
        except ValueError as error:
            raise self._strange("it names tokens by their texts, not by their ids") from error
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise self._strange("there are no log-probabilities in it") from error
        if len(rows) != len(texts):
            raise self._strange(f"it has {len(rows)} of the {len(texts)} rows that were asked for")
        return [self._checked(row) for row in rows]

    def _checked(self, row: dict[int, float]) -> dict[int, float]:
        """A row without tokens of no probability. Raises ServerProblem for what cannot be."""
        if not all(isinstance(value, int | float) and value <= SLACK for value in row.values()):
            raise self._strange("it holds probabilities above 1")
        if any(not 0 <= token < max(self.vocabulary, len(row)) for token in row):
            raise self._strange("it names tokens that the tokenizer does not have")
        possible = {token: min(float(value), 0.0) for token, value in row.items() if value > IMPOSSIBLE}
        if math.fsum(map(math.exp, possible.values())) > 1 + SLACK:
            raise self._strange("its probabilities add up to more than 1")
        return possible

    def _strange(self, what: str) -> ServerProblem:
        return ServerProblem(f"The answer of {self.base} cannot be used: {what}.")

    def stream(
        self, text: list[int], max_tokens: int, top: int, settings: Mapping[str, float]
    ) -> Iterator[list[tuple[int, dict[int, float]]]]:
        """What the server itself writes behind a text, as it comes: (token, token -> log-probability at its
        place) of the tokens of each event, with at least the `top` likeliest. Whoever closes this iterator
        closes the connection, and with it the server's work. settings: how the server draws. Raises
        ServerProblem with one sentence.
        """
        top = top if self.top is None else min(top, self.top)
        body = {"model": self.name, "prompt": list(text), "max_tokens": max_tokens, "stream": True}
        body |= {"logprobs": top, "return_tokens_as_token_ids": True}
        with (
            self._reached(),
            self.http.stream("POST", self.base + "/completions", json=body | settings) as reply,
        ):
            if reply.status_code != 200:
                reply.read()
                raise self._refused(reply)
            for line in reply.iter_lines():
                if line == "data: [DONE]":
                    return
                if line and not line.startswith(("data:", ":")):
                    raise self._strange("it is no stream of events")
                if line.startswith("data:") and (written := self._written(line.removeprefix("data:"), top)):
                    yield written
        raise ServerProblem(f"The server at {self.base} broke off before its text was at an end; try again.")

    def _written(self, event: str, asked: int) -> list[tuple[int, dict[int, float]]]:
        """The tokens of one event of a stream, with their rows."""
        try:
            told = json.loads(event)
        except ValueError:
            raise self._strange("it is not JSON") from None
        if isinstance(told, dict) and "error" in told:
            raise ServerProblem(f"The server at {self.base} gave up: {reason_of(told)}")
        try:
            choice = next(iter(told["choices"]), None)  # none: it tells what was used
            logprobs = choice and choice["logprobs"]
            if not logprobs and not (choice and choice["text"]):
                return []
            tokens = [token_id(name) for name in logprobs["tokens"]]
            tops = [{token_id(name): v for name, v in top.items()} for top in logprobs["top_logprobs"]]
            own = logprobs["token_logprobs"]
            rows = [row | {token: v} for token, v, row in zip(tokens, own, tops, strict=True)]
        except ValueError as error:
            raise self._strange("it names tokens by their texts, not by their ids") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise self._strange("there are no log-probabilities in it") from error
        if any(len(row) < asked for row in rows):
            raise self._strange(f"it names fewer tokens than the {asked} that were asked for")
        return list(zip(tokens, map(self._checked, rows), strict=True))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Says in one sentence what keeps an answer from coming."""
        try:
            yield
        except httpx.TimeoutException:
            raise ServerProblem(
                f"The server at {self.base} took more than {SECONDS:.0f} s; try again."
            ) from None
        except (httpx.ReadError, httpx.RemoteProtocolError):
            raise ServerProblem(
                f"The server at {self.base} broke off before its text was at an end; try again."
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            raise ServerProblem(
                f"Nothing answers at {self.base}; start the server there, or correct host and port."
            ) from None

    def _ask(self, method: str, path: str, body: dict | None = None) -> Any:
        with self._reached():
            reply = self.http.request(method, self.base + path, json=body)
        if reply.status_code != 200:
            raise self._refused(reply)
        try:
            return reply.json()
        except ValueError:
            raise self._strange("it is not JSON") from None

    def _refused(self, reply: httpx.Response) -> ServerProblem:
        """What an answer with an error's status means."""
        status = reply.status_code
        if status in (401, 403):
            sentence = f"The server at {self.base} wants a valid key; put it into {KEY_VARIABLE}."
        elif status == 429:
            sentence = f"The server at {self.base} has too much to do (429); try again later."
        elif status >= 500:
            sentence = f"The server at {self.base} failed ({status}); its log says why."
        else:
            sentence = f"The server at {self.base} refuses this ({status}): {reason_in(reply)}"
        problem = ServerProblem(sentence)
        problem.status = status
        return problem


def token_id(name: str) -> int:
    """12 for `token_id:12`. ValueError for a token that is named by its text."""
    return int(name.removeprefix("token_id:"))


def reason_in(reply: httpx.Response) -> str:
    """The reason that an answer gives, shortened, as the end of a sentence."""
    try:
        return reason_of(reply.json())
    except (ValueError, AttributeError):
        return reason_of({"error": reply.text})


def reason_of(answer: dict) -> str:
    """The same of an answer that is read."""
    reason = answer.get("error", answer)
    text = reason.get("message", reason) if isinstance(reason, dict) else reason
    return f"{' '.join(str(text).split())[:200].rstrip('.')}."
