"""Follows a server that returns tokens as text: OpenAI's chat or completions endpoint, with streaming and
log-probabilities.

Its output can be shown but not used for decisions, since two tokens may have the same text.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from decoders.engine.served import Row, ServerProblem
from decoders.models.openai_server import REFUSED, TRIED_TOPS, OpenAIServer
from decoders.models.token_bytes import TokenBytes

CHAT, COMPLETIONS = "/chat/completions", "/completions"
ESCAPED = re.compile(r"\\x([0-9a-f]{2})")  # in "bytes:\xe2\x80", a token that is not valid text by itself
TokenLogprobs = tuple[
    bytes, float, list[tuple[bytes, float]]
]  # (token, its log-probability, the most likely tokens at its place)


@dataclass
class TextStreamClient(OpenAIServer):
    """Follows the endpoint `path`, CHAT or COMPLETIONS."""

    scores = False  # it scores only its own text
    path: str = CHAT
    bytes_of: TokenBytes | None = field(default=None, repr=False)

    @property
    def continues(self) -> bool:
        """Whether it can continue any text; a chat can only answer a message."""
        return self.path == COMPLETIONS

    def find_top(self) -> None:
        """Finds out whether the server gives the 20 or 5 most likely tokens. Raises ServerProblem if
        neither.
        """
        refusal = None
        for count in TRIED_TOPS:
            try:
                tokens = self._tokens_of(self.ask("POST", self.path, self._body("Hello", 1, count)))
            except ServerProblem as error:
                if error.status not in REFUSED:
                    raise
                refusal = error
                continue
            if tokens and (count := min(len(tops) for _, _, tops in tokens)):
                self.top = count
                return
        why = refusal or "It writes without them."
        raise ServerProblem(f"The server at {self.base} gives no log-probabilities. {why}")

    def next_tokens(self, texts: list) -> list[Row]:
        """Always raises ServerProblem with one sentence."""
        raise ServerProblem(
            f"The server at {self.base} names tokens by their texts, so it can only be followed."
        )

    def along(self, text: list[int], lengths: list[int]) -> None:
        """None: it does not score prompts."""
        return None

    def stream(
        self, text: list[int], max_tokens: int, top: int, settings: Mapping[str, float]
    ) -> Iterator[list[tuple[int, Row]]]:
        """As `CompletionsClient.stream`; sends the text of these tokens, to a chat as a message."""
        special = self.bytes_of.special
        message = b"".join(self.bytes_of(t) for t in text if t not in special).decode("utf-8", "replace")
        top = min(top, self.top)
        body = self._body(message, max_tokens, top) | dict(settings)
        with closing(self.events(self.path, body)) as events:
            for event in events:
                if written := [self._row(one, top) for one in self._tokens_of(event)]:
                    yield written

    def _body(self, message: str, max_tokens: int, top: int) -> dict[str, Any]:
        body = {"model": self.name, "max_tokens": max_tokens}
        if self.path == COMPLETIONS:
            return body | {"prompt": message, "logprobs": top}
        asked = [{"role": "user", "content": message}]
        return body | {"messages": asked, "logprobs": True, "top_logprobs": top}

    def _tokens_of(self, answer: dict) -> list[TokenLogprobs]:
        """The tokens of an answer, or of one event of a stream."""
        try:
            choice = next(iter(answer["choices"]), None)  # None: an event that reports usage
            if choice is None:
                return []
            if logprobs := choice.get("logprobs"):
                return of_chat(logprobs) if "content" in logprobs else of_completions(logprobs)
            message = choice.get("delta") or choice.get("message") or {}
            texts = [choice.get("text"), *(message.get(name) for name in ("content", "reasoning_content"))]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self.strange("its log-probabilities have another form than OpenAI's") from error
        if any(texts):
            raise self.strange("there are no log-probabilities in it")
        return []

    def _row(self, token_logprobs: TokenLogprobs, asked: int) -> tuple[int, Row]:
        """(token id, its row by ids), without alternatives that the tokenizer lacks."""
        own, logprob, tops = token_logprobs
        if len(tops) < asked:
            raise self.strange(f"it names fewer tokens than the {asked} that were asked for")
        if (token := self._ids.get(own)) is None:
            text = own.decode("utf-8", "replace")
            raise self.strange(
                f"it writes {text[:30]!r}, which is not a token of the tokenizer; name the model's own "
                "tokenizer"
            )
        row = {token: logprob}
        for piece, value in tops:
            if (other := self._ids.get(piece)) is not None:
                row.setdefault(other, value)
        return token, self.checked(row)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        """Bytes -> token id. Of tokens with equal bytes, the first, and byte-fallback tokens only if there is
        no other.
        """
        named = self.bytes_of.tokenizer.get_vocab().items()
        ordered = sorted(named, key=lambda one: (not one[0].startswith("<0x"), -one[1]))
        return {self.bytes_of(token): token for _, token in ordered}


def of_chat(logprobs: dict) -> list[TokenLogprobs]:
    """Parses `{"content": [{token, bytes, logprob, top_logprobs}]}`."""
    return [
        (piece(one), one["logprob"], [(piece(other), other["logprob"]) for other in one["top_logprobs"]])
        for one in logprobs["content"] or []
    ]


def of_completions(logprobs: dict) -> list[TokenLogprobs]:
    """Parses `{"tokens": [...], "token_logprobs": [...], "top_logprobs": [{token: log-probability}]}`."""
    rows = zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True)
    return [(raw(own), value, [(raw(name), v) for name, v in tops.items()]) for own, value, tops in rows]


def piece(entry: dict) -> bytes:
    """The bytes of a token in a chat answer; servers may omit them."""
    return bytes(entry["bytes"]) if entry.get("bytes") else entry["token"].encode()


def raw(name: str) -> bytes:
    """The bytes of a token in a completions answer."""
    if name.startswith("bytes:") and ESCAPED.search(name):
        return bytes(int(two, 16) for two in ESCAPED.findall(name))
    return name.encode()
