"""A draft's distributions along known texts, beside the target's: as it is, and as if it read differently."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from decoders.heads import DraftModule, take_taps
from decoders.heads.parts.taps import Taps
from decoders.trace.token_text import visible
from explorer.doctor.canaries import Canary
from explorer.twin.sides import PIECE, rows_along
from visualizers.analysis.draft_diagnosis import SHIFTS, Along, Cause, Probe

UNRELATED = 8  # other places with which each place is compared
FLAT = 1e-6  # a draft whose most likely token is less than this times more likely than the least says nothing

Done = tuple[int, int]  # texts that are done, of all
Rows = Iterator[torch.Tensor | None]  # probabilities [V] (float64); None where nothing is guessed


@dataclass(frozen=True)
class Way:
    """Another way to read: the cause if the draft is better so, `shift` as in Cause, and how the tokens of a
    text, or what a head reads from its target, become the others.
    """

    cause: Cause
    shift: int
    tokens: Callable[[Canary], list[int] | None] | None = None
    taps: Callable[[Taps], Taps] | None = None
    reads: tuple[int, ...] = ()


def target_rows(target: Any, canary: Canary) -> Rows:
    """The target's distributions for the tokens of the answer."""
    for row in rows_along(target, canary.ids, canary.start):
        yield row.exp()


def draft_rows(guesser: Any, target: Any, canary: Canary, way: Way | None = None) -> Rows:
    """The draft's distributions for the tokens of the answer."""
    if isinstance(guesser, DraftModule):
        yield from head_rows(guesser, target, canary, way)
        return
    ids = canary.ids if way is None else way.tokens(canary)
    if ids is None:
        return
    behind = len(canary.ids) - canary.start
    for row in rows_along(guesser, ids, len(ids) - behind):
        yield row.exp()


@torch.inference_mode()
def head_rows(head: DraftModule, target: Any, canary: Canary, way: Way | None) -> Rows:
    """A head's guesses of depth 1: row n is for token n + 2, so none is for the first two tokens."""
    reads = head.reads if way is None or not way.reads else tuple({*head.reads, *way.reads})
    taps = take_taps(target.model, torch.tensor([canary.ids], device=target.model.device), reads)
    if way is not None:
        taps = way.taps(taps)
    rows = head.along(taps, 1)[0][0]
    for _ in range(max(0, 2 - canary.start)):
        yield None
    for row in rows[max(0, canary.start - 2) :]:
        yield row.double().cpu().softmax(-1)


def along(
    canary: Canary, target: Any, guesser: Any, done: Done
) -> Generator[Done, None, tuple[Along, list[torch.Tensor]]]:
    """What the draft guesses along a text, and the target's distributions if it is its own writing; yields
    `done` now and then, so that others need not wait.
    """
    lists: dict[str, list] = {
        name: [] for name in ("overlap", "best", "sure", "knows", "guess", "q", "broken")
    }
    ps, qs = [], []
    rows = zip(target_rows(target, canary), draft_rows(guesser, target, canary), strict=True)
    for at, (token, (p, q)) in enumerate(zip(canary.ids[canary.start :], rows, strict=True)):
        if at % PIECE == 0:
            yield done
        broken = q is not None and is_broken(q)
        asked = q is not None and not broken
        best = p.max(-1)
        lists["overlap"].append(overlap(p, q) if asked else None)
        lists["best"].append(int(best.indices))
        lists["sure"].append(float(best.values))
        lists["knows"].append(float(p[token]))
        lists["guess"].append(int(q.argmax()) if asked else None)
        lists["q"].append(float(q.max()) if asked else None)
        lists["broken"].append(broken)
        if canary.own:
            ps.append(p)
            qs.append(q if asked else None)
    texts = [visible(target.bytes_of(token)) for token in canary.ids[canary.start :]]
    found = Along(canary.name, canary.asks, canary.own, canary.start, texts, **lists)
    if canary.own:
        found = replace(found, shifted=shifted(ps, qs), unrelated=unrelated(ps, qs))
    return found, ps


def is_broken(q: torch.Tensor) -> bool:
    """Whether a row is no distribution, or all its tokens are equally likely."""
    return not bool(q.isfinite().all()) or float(q.max() - q.min()) < FLAT * float(q.max())


def overlap(p: torch.Tensor, q: torch.Tensor) -> float:
    """The probability that a token drawn from q is accepted: the sum of min(p, q)."""
    return float(torch.minimum(p, q).sum())


def shifted(ps: Sequence[torch.Tensor], qs: Sequence[torch.Tensor | None]) -> dict[int, list[float | None]]:
    """For each shift: the overlap of each q with the p so many places later."""
    return {
        shift: [
            overlap(ps[n + shift], q) if q is not None and 0 <= n + shift < len(ps) else None
            for n, q in enumerate(qs)
        ]
        for shift in SHIFTS
    }


def unrelated(ps: Sequence[torch.Tensor], qs: Sequence[torch.Tensor | None]) -> list[float | None]:
    """The overlap of each q with the p of places far from it, in the mean."""
    far = range(3, 3 + UNRELATED)
    return [
        None
        if q is None or len(ps) < 8
        else sum(overlap(ps[(n + skip * 2) % len(ps)], q) for skip in far) / UNRELATED
        for n, q in enumerate(qs)
    ]


def probe(
    way: Way, canaries: Sequence[Canary], ps: Sequence[list[torch.Tensor]], target: Any, guesser: Any
) -> Probe:
    """The overlaps of the draft along the target's own texts if it reads in this way."""
    found = []
    for canary, own in zip(canaries, ps, strict=True):
        rows = list(draft_rows(guesser, target, canary, way)) or [None] * len(own)
        found.append(
            [
                overlap(p, q) if q is not None and not is_broken(q) else None
                for p, q in zip(own, rows, strict=True)
            ]
        )
    return Probe(way.cause, way.shift, found)


def ways(guesser: Any, target: Any) -> list[Way]:
    """Other ways in which this draft could read."""
    if isinstance(guesser, DraftModule):
        return [*other_states(guesser), *other_layers(guesser, target)]
    return [*other_beginnings(guesser), *other_templates(guesser, target)]


def leaks(way: Way) -> bool:
    """Whether a way shows the draft what it is to guess: the target's state after a later token holds the
    target's own prediction, so that agreeing with it would prove nothing.
    """
    return way.cause == Cause.STATES and way.shift > 0


def other_states(head: DraftModule) -> Iterator[Way]:
    """The target's states one token later, or earlier."""
    for by in (1, -1):

        def rolled(taps: Taps, by: int = by) -> Taps:
            states = {layer: state.roll(-by, 1) for layer, state in taps.states.items()}
            return replace(taps, hidden=taps.hidden.roll(-by, 1), states=states)

        yield Way(Cause.STATES, by, taps=rolled)


def other_layers(head: DraftModule, target: Any) -> Iterator[Way]:
    """States of the layers above or below those that it reads, or of the same in reverse order."""
    layers = target.model.config.get_text_config().num_hidden_layers
    options = [(by, tuple(layer + by for layer in head.reads)) for by in (1, -1)]
    options += [(0, tuple(reversed(head.reads)))] if len(head.reads) > 1 else []
    for by, others in options:
        if head.reads and all(0 <= layer <= layers for layer in others):

            def swapped(taps: Taps, others: tuple[int, ...] = others) -> Taps:
                states = {own: taps.states[other] for own, other in zip(head.reads, others, strict=True)}
                return replace(taps, states=states)

            yield Way(Cause.LAYERS, by, taps=swapped, reads=others)


def other_beginnings(draft: Any) -> Iterator[Way]:
    """The text with the draft's token that begins texts, if it is not there, or without it."""
    bos = draft.tokenizer.bos_token_id
    if bos is None:
        return
    yield Way(Cause.BOS, 1, lambda canary: None if canary.ids[0] == bos else [bos, *canary.ids])
    yield Way(
        Cause.BOS,
        -1,
        lambda canary: canary.ids[1:] if canary.ids[0] == bos and canary.start > 1 else None,
    )


def other_templates(draft: Any, target: Any) -> Iterator[Way]:
    """The message in the draft's own chat template, if it differs from the target's."""
    if draft.chats and draft.tokenizer.chat_template != target.tokenizer.chat_template:

        def rendered(canary: Canary) -> list[int] | None:
            if canary.message is None:
                return None
            return [*draft.cut(draft.render(canary.message)), *canary.ids[canary.start :]]

        yield Way(Cause.TEMPLATE, 0, rendered)
