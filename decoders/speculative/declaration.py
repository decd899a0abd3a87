"""Declares a strategy that drafts and verifies: what it says of itself follows from its pair."""

from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.own_code import passes_on
from decoders.registry import strategy
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.interfaces import (
    Drafter,
    Pair,
    Verifier,
    badge,
    described,
)
from decoders.strategy import Part


def speculative(**declaration: Any) -> Callable[[Callable[[dict], Pair]], Callable[[dict], Pair]]:
    """Decorator of a function from parameters to a drafter and a verifier: registers the strategy that runs
    rounds of the two and nothing else. The function's docstring is the strategy's card; `declaration` as in
    `draft_and_verify`.
    """

    def register(pair: Callable[[dict], Pair]) -> Callable[[dict], Pair]:
        def run(lane: Lane) -> Iterator[None]:
            yield from rounds(lane, *pair(lane.parameters))

        draft_and_verify(pair, **declaration)(update_wrapper(passes_on(run), pair))
        return pair

    return register


def draft_and_verify(
    pair: Callable[[dict], Pair],
    /,
    *,
    fits: Callable[[Drafter, Verifier], str | None] | None = None,
    further_part: Callable[[dict], Part] | None = None,
    **declaration: Any,
) -> Callable[[Callable], Callable]:
    """The decorator `registry.strategy` for a generator that does more than run the rounds of `pair`.

    The badge, the parts and what is read from the target follow from the pair that the parameters ask for,
    and the needs from the pair of the default parameters, unless `declaration` gives them. `fits`: a message
    if drafter and verifier do not go together. `further_part`: a part that the strategy has besides the pair.
    """

    def parts(parameters: dict) -> list[Part]:
        return [*described(*pair(parameters)), *([further_part(parameters)] if further_part else [])]

    drafter, verifier = pair({p.name: p.default for p in declaration.get("parameters", ())})
    usual = {
        "family": "speculative",
        "needs": ("target", *drafter.roles),
        "view": "draft_rounds",
        "badge": lambda parameters: badge(*pair(parameters), parameters["temperature"]),
        "parts": parts,
        "reads": lambda parameters: capabilities_read(*pair(parameters)),
    }
    if fits is not None:
        usual["together"] = lambda parameters: fits(*pair(parameters))
    return strategy(**usual | declaration)


def capabilities_read(drafter: Drafter, verifier: Verifier) -> dict[str, set[Capability]]:
    """The `reads` of a strategy with this pair."""
    read = {*drafter.reads, *verifier.reads}
    return {"target": read} if read else {}
