"""Requests the next token's log-probabilities from a server with OpenAI's completions endpoint.

Prompts are lists of token ids, and tokens come back as ids (`return_tokens_as_token_ids`, as in vLLM).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from decoders.engine.served import ServerProblem
from decoders.models.openai_server import TRIED_TOPS, OpenAIServer

ALL = -1


@dataclass
class CompletionsClient(OpenAIServer):
    """A server that scores any text of token ids and identifies tokens by their ids."""

    continues = scores = True  # it continues and scores any text
    supports_prompt_logprobs: bool = True  # until it refuses to score a prompt

    def find_top(self) -> None:
        """Finds out how many log-probabilities the server gives: all, 20 or 5. Raises ServerProblem if it
        gives none.
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
        """For each text: token -> log-probability of the next token. Raises ServerProblem with one
        sentence.
        """
        rows = self._rows(texts, ALL if self.top is None else self.top)
        for row in rows:
            if len(row) < (self.top or 0):
                raise self.strange(f"it names {len(row)} tokens where {self.top} were asked for")
        return rows

    def along(self, text: list[int], lengths: Sequence[int]) -> list[dict[int, float]] | None:
        """For each n of `lengths`: token -> log-probability after the first n tokens of a text, all from one
        request. None if this server does not score prompts. Raises ServerProblem with one sentence.
        """
        if not self.supports_prompt_logprobs:
            return None
        count = ALL if self.top is None else self.top
        try:
            (choice,) = self._choices([text], count, prompt_logprobs=count)
            prompt_logprobs = choice["prompt_logprobs"]
        except (KeyError, ServerProblem) as error:
            if isinstance(error, ServerProblem) and error.status not in (400, 422):
                raise
            self.supports_prompt_logprobs = False
            return None
        try:  # the server attaches each row to the token that follows its place
            rows = [{int(t): one["logprob"] for t, one in row.items()} for row in prompt_logprobs[1:]]
            rows.append({token_id(t): v for t, v in choice["logprobs"]["top_logprobs"][0].items()})
            wanted = [self.checked(rows[n - 1]) for n in lengths]
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise self.strange("its log-probabilities of the prompt have another form than vLLM's") from error
        # the row includes the token that follows, even if it is not among the most likely
        return [dict(sorted(row.items(), key=lambda one: -one[1])[: self.top]) for row in wanted]

    def _choices(self, texts: Sequence[list[int]], count: int, **more: int) -> list[dict]:
        """The choices of an answer in the order of these texts: one token each, with `count`
        log-probabilities.
        """
        body = {
            "model": self.name,
            "prompt": [list(text) for text in texts],
            "max_tokens": 1,
            "temperature": 0,
        }
        body |= {"logprobs": count, "return_tokens_as_token_ids": True}
        answer = self.ask("POST", "/completions", body | more)
        try:
            return sorted(answer["choices"], key=lambda choice: choice["index"])
        except (KeyError, TypeError) as error:
            raise self.strange("there are no log-probabilities in it") from error

    def _rows(self, texts: Sequence[list[int]], count: int) -> list[dict[int, float]]:
        choices = self._choices(texts, count)
        try:
            tops = [choice["logprobs"]["top_logprobs"][0] for choice in choices]
            rows = [{token_id(name): value for name, value in top.items()} for top in tops]
        except ValueError as error:
            raise self.strange("it names tokens by their texts, not by their ids") from error
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise self.strange("there are no log-probabilities in it") from error
        if len(rows) != len(texts):
            raise self.strange(f"it has {len(rows)} of the {len(texts)} rows that were asked for")
        return [self.checked(row) for row in rows]

    def stream(
        self, text: list[int], max_tokens: int, top: int, settings: Mapping[str, float]
    ) -> Iterator[list[tuple[int, dict[int, float]]]]:
        """Streams what the server itself decodes after a text. For each event: a list of (token, token ->
        log-probability at its place, for at least the `top` most likely). Closing this iterator closes the
        connection, which ends the request. settings: the server's sampling settings. Raises ServerProblem
        with one sentence.
        """
        top = top if self.top is None else min(top, self.top)
        body = {"model": self.name, "prompt": list(text), "max_tokens": max_tokens, "logprobs": top}
        body |= {"return_tokens_as_token_ids": True, **settings}
        with closing(self.events("/completions", body)) as events:
            for event in events:
                if written := self._written(event, top):
                    yield written

    def _written(self, event: dict, asked: int) -> list[tuple[int, dict[int, float]]]:
        """The tokens of one event of a stream, with their rows."""
        try:
            choice = next(iter(event["choices"]), None)  # None: an event that reports usage
            logprobs = choice and choice["logprobs"]
            if not logprobs and not (choice and choice["text"]):
                return []
            tokens = [token_id(name) for name in logprobs["tokens"]]
            tops = [{token_id(name): v for name, v in top.items()} for top in logprobs["top_logprobs"]]
            own = logprobs["token_logprobs"]
            rows = [row | {token: v} for token, v, row in zip(tokens, own, tops, strict=True)]
        except ValueError as error:
            raise self.strange("it names tokens by their texts, not by their ids") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise self.strange("there are no log-probabilities in it") from error
        if any(len(row) < asked for row in rows):
            raise self.strange(f"it names fewer tokens than the {asked} that were asked for")
        return list(zip(tokens, map(self.checked, rows), strict=True))


def token_id(name: str) -> int:
    """12 for `token_id:12`. Raises ValueError for a token that is given as text."""
    return int(name.removeprefix("token_id:"))
