"""Given tokens: a lane may begin with tokens of another lane, some of which a person replaced.

`{"tokens": [ids], "forced": [positions]}`: the tokens after the prompt, and which of them (0 is the first) a
person chose; the others are copied from the lane that this one branched off. A `Rating` holds the target's
rank and probability of a forced token.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decoders.refusal import Refusal
from decoders.trace.events import Commit, Event, Note, Propose, Verdict
from decoders.trace.number_format import number
from decoders.trace.trace import Trace

if TYPE_CHECKING:  # only for annotations: requests are checked before torch is loaded
    import torch

MAX_RATED = 64  # forced tokens, at most, for which the target's distribution is recorded


@dataclass(frozen=True)
class Rating:
    """How the target rates a forced token: log-probability and rank (1 is the most likely) among `among`
    tokens before processors, and probability `p` after them.
    """

    logprob: float
    rank: int
    among: int
    p: float


def check_given_tokens(
    begin: dict[str, Any], eos: Collection[int], max_tokens: int, vocabulary: int
) -> tuple[list[int], list[int]]:
    """(tokens, forced places) of `begin`. Raises Refusal with one sentence if it is unusable.

    `max_tokens`: tokens that the lane may write, these included; `vocabulary`: number of tokens of the model.
    Nothing may follow an end-of-text token.
    """
    tokens, forced = begin.get("tokens"), begin.get("forced", [])
    if not _whole(tokens) or not tokens:
        raise Refusal("A lane begins with a list of token ids: whole numbers of at least 0.")
    if not _whole(forced) or any(place >= len(tokens) for place in forced):
        raise Refusal(f"The forced positions must be whole numbers from 0 to {len(tokens) - 1}.")
    if max(tokens) >= vocabulary:
        raise Refusal(
            f"The model knows {vocabulary:,} tokens and no token {max(tokens):,}; begin with its own."
        )
    if len(tokens) > max_tokens:
        raise Refusal(
            f"The lane begins with {len(tokens):,} tokens, but may write only {max_tokens:,}; "
            "raise max_new_tokens or begin earlier."
        )
    ends = [place for place, token in enumerate(tokens[:-1]) if token in eos]
    if ends:
        raise Refusal(
            f"Token {ends[0] + 1} of the {len(tokens):,} that the lane begins with ends the text, so "
            "nothing may follow it; begin earlier."
        )
    return list(tokens), sorted(set(forced))


def _whole(values: object) -> bool:
    """Whether this is a list of integers of at least 0."""
    return isinstance(values, list) and all(
        isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values
    )


def ratings(
    raw: "torch.Tensor", processed: "torch.Tensor", tokens: list[int], places: list[int]
) -> dict[int, Rating]:
    """How the target rates the tokens at N places, by place. raw, processed: its log-probabilities [N, V]
    there, before and after processors.
    """
    by_place = {}
    for row, place in enumerate(places):
        token = tokens[place]
        logprob, p = float(raw[row, token]), float(processed[row, token].exp())
        rank = 1 + int((raw[row] > raw[row, token]).sum())
        by_place[place] = Rating(logprob, rank, raw.shape[-1], p)
    return by_place


def proposals(tokens: list[int], forced: list[int], prompt: int) -> list[Event]:
    """The first events of a lane that begins with `tokens` after a prompt of `prompt` tokens."""
    events: list[Event] = [Note(given_tokens_note(len(tokens), len(forced)))]
    for place, token in enumerate(tokens):
        source = "person" if place in forced else "copied"
        events.append(Propose(prompt + place, prompt + place - 1, token, None, source, fill="fixed"))
    return events


def decisions(
    tokens: list[int], forced: list[int], prompt: int, ratings: Mapping[int, Rating]
) -> list[Event]:
    """The events that follow: a verdict on each forced token with its probability, and the commit of all."""
    nodes, events = list(range(prompt, prompt + len(tokens))), []
    for place in forced:
        rating = ratings.get(place)
        events.append(Verdict(nodes[place], "forced", p=rating.p if rating else None, reason=why(rating)))
    known = {place: rating.logprob for place, rating in ratings.items() if math.isfinite(rating.logprob)}
    return [*events, Commit(nodes, [known.get(place) for place in range(len(tokens))])]


def why(rating: Rating | None) -> str:
    """The message about a forced token."""
    base = "Inserted by a person; nothing was decided here."
    if rating is None:
        return base
    p = number(math.exp(rating.logprob))
    return f"{base} The model ranks it {rating.rank:,} of {rating.among:,} here, p {p}."


def given_tokens_note(count: int, forced: int) -> str:
    """The note that says what a lane begins with."""
    copied = count - forced
    parts = [f"{copied} copied from another lane"] if copied else []
    parts += [f"{forced} inserted by a person"] if forced else []
    return f"Begins with {count} token{'s' if count > 1 else ''}: {', '.join(parts)}."


def of(trace: Trace) -> dict[str, list[int]] | None:
    """The given tokens that a trace's first step records, in the form that `Lane` takes; None if there are
    none.
    """
    given = [e for e in trace.steps[0].of(Propose) if e.given] if trace.steps else []
    if not given:
        return None
    return {
        "tokens": [e.token for e in given],
        "forced": [place for place, e in enumerate(given) if e.source == "person"],
    }
