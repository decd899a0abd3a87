"""Examines a drafter of a target, both loaded here: its guesses along the canaries, the same if it read in
other ways, and rounds as long as any that may pay.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from decoders import registry
from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer.acceptance.drafters import Drafter, chain_of, longest_chain
from explorer.acceptance.golden import Gained, of_rounds
from explorer.acceptance.measuring import Settings as Decoding
from explorer.acceptance.measuring import lane_in_pieces
from explorer.acceptance.prompts import Prompt
from explorer.doctor.along import along, leaks, probe, ways
from explorer.doctor.canaries import Canary, known, prompts
from visualizers.analysis.draft_diagnosis import Along, Finding, diagnosis
from visualizers.analysis.draft_surface import Round, Surface, cost_of, of, rounds_of, surface

LONGEST = 12  # tokens of the drafts from which the surface is computed
USUAL = 5  # tokens of a chain, as engines draft with heads


@dataclass(frozen=True)
class Settings:
    """How a drafter is examined. num_assistant_tokens: the length of drafts in question, None for that of its
    strategy; answer: new tokens of each text that the target writes; timed: whether rounds are timed.
    """

    num_assistant_tokens: int | None = None
    answer: int = 64
    timed: bool = True


@dataclass(frozen=True)
class Examination:
    """What was found. texts: what was guessed along each; words: token -> text, of those that occur; surface:
    None if rounds were not timed; counts: a server's, by name; engine: the mean overlap of a recorded
    engine's q with ours, None if it was not compared; drafted: tokens drafted per round; gained: tokens
    gained per round, None if there were no rounds.
    """

    target: str
    draft: str
    texts: list[Along]
    findings: list[Finding]
    words: dict[int, str] = field(default_factory=dict)
    surface: Surface | None = None
    counts: list[tuple[str, dict]] = field(default_factory=list)
    engine: float | None = None
    drafted: int = 0
    gained: Gained | None = None


def in_pieces(
    target: Any, drafter: Drafter, given: list[Prompt], settings: Settings
) -> Iterator[tuple[int, int] | Examination]:
    """Examines in pieces: yields (texts done, of all) after every piece, and finally the examination.

    Raises Refusal with one sentence if the drafter cannot be asked along a text, or a text does not fit.
    """
    if drafter.guesser is None:
        raise Refusal(
            f"{drafter.name!r} drafts from the text alone, without a model or head; name a draft with "
            "weights."
        )
    plan = list(prompts(target, given))
    own, plain, how = [], [], Decoding(settings.answer)
    total = 2 * len(plan) + 6
    for name, text, message in plan:
        ids = target.encode(text) if message is None else target.cut(text)
        trace = yield from lane_in_pieces("greedy", {"target": target}, ids, how, {}, (len(own), total))
        plain.append(trace)
        ids = [*trace.prompt, *trace.output()]
        own.append(Canary(name, "writing as its target does", ids, len(trace.prompt), True, message))
    guesser, room = drafter.guesser, min(target.context, drafter.models.get("draft", target).context)
    reader = drafter.models["target"]  # with the rows that its drafter has
    texts, distributions = [], []
    for canary in [*own, *known(reader, room, whole=drafter.models.get("draft") is None)]:
        done = min(total, len(plan) + len(texts)), total
        found, ps = yield from along(canary, reader, guesser, done)
        texts.append(found)
        distributions += [ps] if canary.own else []
    probes = []
    for way in ways(guesser, reader):
        if not leaks(way):
            probes.append(probe(way, own, distributions, reader, guesser))
            yield total, total
    measured, rounds = None, []
    if settings.timed:
        measured, rounds = yield from timed(drafter, own, plain, settings, total)
    findings = diagnosis(texts, probes, length=measured.length if measured else None)
    words = {token: shown(target, token) for text in texts for token in numbers_in(text)}
    drafted = measured.own if measured else 0
    counts = [of(one, drafted, 0.0)[1] for one in rounds if len(one.sure) >= drafted]
    yield Examination(
        target.name,
        drafter.name,
        texts,
        findings,
        words,
        measured,
        drafted=drafted,
        gained=of_rounds(counts) if drafted else None,
    )


def timed(
    drafter: Drafter, own: list[Canary], plain: list[Trace], settings: Settings, total: int
) -> Generator[tuple[int, int], None, tuple[Surface | None, list[Round]]]:
    """The surface, and the rounds of the longest drafts that it is computed from; (None, []) if the strategy
    drafts no chains.
    """
    longest = longest_chain(drafter.strategy, LONGEST)
    if longest is None:
        return None, []
    traces = []
    for canary in own:
        shape = chain_of(drafter.strategy, longest)
        before = canary.ids[: canary.start]
        trace = yield from lane_in_pieces(
            drafter.strategy, drafter.models, before, Decoding(settings.answer), shape, (total, total)
        )
        traces.append(trace)
    cost = cost_of(traces, plain)
    rounds = [one for trace in traces for one in rounds_of(trace)]
    length = settings.num_assistant_tokens or own_length(drafter.strategy, longest)
    return surface(rounds, cost, length) if cost else None, rounds


def own_length(strategy: str, most: int) -> int:
    """The length of a strategy's drafts if nobody says otherwise, at most `most`; USUAL for one that drafts
    trees.
    """
    declared = {one.name: one.default for one in registry.get(strategy).parameters}
    return min(most, int(declared.get("num_assistant_tokens", USUAL)))


def numbers_in(text: Along) -> set[int]:
    """The tokens that a text's places name."""
    return {*text.best, *(token for token in text.guess if token is not None)}


def shown(target: Any, token: int) -> str:
    """A token as it is shown; its number if the target has none of this number."""
    from decoders.trace.token_text import visible

    return visible(target.bytes_of(token)) if 0 <= token < target.engine.vocabulary else f"#{token}"
