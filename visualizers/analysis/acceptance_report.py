"""Acceptance over many prompts: how several drafters did on the same texts of one target, and why their
rounds ended.

Folds traces and what the drafters guessed along the target's texts. Metrics carry vLLM's names and formulas
(`speculation_report.NAMES`).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from decoders.trace.events import Commit, Verdict
from decoders.trace.number_format import many as counted_in
from decoders.trace.trace import Trace
from visualizers.analysis.calibration import wilson
from visualizers.analysis.drafted_tokens import ENTROPIES, EXAMPLES, end_of, quoted
from visualizers.analysis.first_rejections import Alone, counted, first_rejections
from visualizers.analysis.lane_stats import LaneFacts, Round
from visualizers.analysis.speculation_report import depths, metrics

BIN = 8  # tokens of a bin of positions
TOP, PLACES = 12, 6  # groups that are listed, and positions of each that are linked
CONTEXT = 40  # characters of text before a position


@dataclass(frozen=True)
class Text:
    """What the target wrote after one prompt: its new tokens as they are shown, and at each of them its
    entropy in bits and its highest probability.
    """

    prompt: str
    category: str | None
    tokens: Sequence[str]
    entropy: Sequence[float]
    best: Sequence[float]


@dataclass(frozen=True)
class Guesses:
    """A drafter's guess for each new token of one text, given all true tokens before it; None where it cannot
    guess. guess: its most likely token, shown; q: its probability; right: whether it is the text's;
    rank (from 1) and q_text: of the text's token; overlap: sum of min(p, q), the probability that a drawn
    guess is accepted; known: whether it can propose the text's token; sees_path: see `Alone`.
    """

    guess: Sequence[str | None]
    q: Sequence[float | None]
    right: Sequence[bool | None]
    rank: Sequence[int | None]
    q_text: Sequence[float | None]
    overlap: Sequence[float | None]
    known: Sequence[bool]
    sees_path: bool = True


@dataclass(frozen=True)
class Measured:
    """One drafter: its name, how it decoded each prompt, and its guesses along the target's texts (None for
    one that cannot be asked).
    """

    name: str
    traces: Sequence[Trace]
    guesses: Sequence[Guesses] | None = None


def acceptance_report(
    target: str, temperature: float, texts: Sequence[Text], drafts: Sequence[Measured]
) -> dict:
    """All that the page shows, as plain data.

    target, temperature   whose texts they are, and how both models drew
    prompts     [{prompt, category, tokens, entropy}], in the order of their file
    drafts      one per drafter, see `of_draft`
    sides       the first two drafters at the same places, see `side_by_side`; None if one cannot be asked
    """
    greedy = temperature == 0.0
    made = [of_draft(texts, draft, greedy) for draft in drafts]
    known = [draft for draft in drafts[:2] if draft.guesses is not None]
    shown = [
        {"prompt": t.prompt, "category": t.category, "tokens": list(t.tokens), "entropy": list(t.entropy)}
        for t in texts
    ]
    sides = side_by_side(texts, known[0], known[1], greedy) if len(known) == 2 else None
    return {
        "target": target,
        "temperature": temperature,
        "prompts": shown,
        "drafts": made,
        "sides": sides,
    }


def of_draft(texts: Sequence[Text], draft: Measured, greedy: bool) -> dict:
    """The results of one drafter over all prompts.

    name
    shape       what it drafted, in words: see `shape`
    metrics     vLLM's and ours, over all rounds: [{name, words, formula, value}], see `speculation_report`
    causes      number of rejections by cause, see `rejection_causes.CAUSES`
    depths      acceptance by depth, see `speculation_report.depths`
    entropies   acceptance by the target's entropy: [{low, high, tested, accepted, share}]
    positions   acceptance by the position in the text: [{first, last, tested, accepted, low, high}]
    along       the same at all positions, teacher-forced: [{first, last, places, share}]; empty if it has
                no guesses
    tokens, contexts   the tokens rejected most often, and the words before them, see `groups`
    prompts     [{num_drafts, num_draft_tokens, num_accepted_tokens, draft_acceptance_rate,
                mean_acceptance_length, rejections, cause, marks}], one per prompt; marks: see `marks`
    rejections  the first rejection of each round, with the number of its prompt (from 0)
    """
    folded = [LaneFacts(trace) for trace in draft.traces]
    rounds = [made for facts in folded for made in facts.rounds]
    rejections, by_prompt = [], []
    for at, (trace, facts) in enumerate(zip(draft.traces, folded, strict=True)):
        guesses = draft.guesses[at] if draft.guesses is not None and greedy else None
        alone = Alone(guesses.right, guesses.known, guesses.sees_path) if guesses else None
        here = [one | {"prompt": at} for one in first_rejections(trace, alone=alone)]
        rejections += here
        by_prompt.append(of_prompt(facts, here) | {"marks": marks(trace)})
    return {
        "name": draft.name,
        "shape": shape(rounds),
        "metrics": metrics(folded) if rounds else [],
        "causes": counted(rejections),
        "depths": depths(rounds) if rounds else [],
        "entropies": by_entropy(folded),
        "positions": by_position(folded),
        "along": along(texts, draft, greedy),
        "tokens": groups(rejections, "token"),
        "contexts": groups(rejections, "before"),
        "prompts": by_prompt,
        "rejections": [{name: one[name] for name in REJECTION} for one in rejections],
    }


def shape(rounds: list[Round]) -> str | None:
    """The shape of the drafts in these rounds, in words, measured; None if nothing was drafted."""
    if not rounds:
        return None
    parents = [[drafted.parent for drafted in made.drafted] for made in rounds]
    many, levels = max(map(len, parents)), max(one.depth for made in rounds for one in made.drafted)
    if any(len(set(own)) < len(own) for own in parents):
        return f"trees of up to {counted_in(many, 'token')} on up to {counted_in(levels, 'level')}"
    return f"chains of up to {counted_in(many, 'token')}"


REJECTION = ("prompt", "place", "round", "depth", "context", "token", "instead", "p", "q", "entropy", "cause")


def of_prompt(facts: LaneFacts, rejections: list[dict]) -> dict:
    """vLLM's metrics of one prompt by name, its number of rejections, and their most frequent cause."""
    values = {one["name"]: one["value"] for one in metrics([facts])} if facts.rounds else {}
    names = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    rates = ("draft_acceptance_rate", "mean_acceptance_length")
    top_cause = Counter(one["cause"] for one in rejections).most_common(1)
    return (
        {name: values.get(name, 0) for name in names}
        | {name: values.get(name) for name in rates}
        | {"rejections": len(rejections), "cause": top_cause[0][0] if top_cause else None}
    )


def worst_first(report: dict, draft: int = 0) -> list[int]:
    """The numbers of the prompts (from 0), those at which a drafter gained least per round first."""

    def gained(at: int) -> float:
        value = report["drafts"][draft]["prompts"][at]["mean_acceptance_length"]
        return math.inf if value is None else value

    return sorted(range(len(report["prompts"])), key=gained)


def marks(trace: Trace) -> list[str]:
    """What each new token of a lane is: accepted, resampled, bonus, or "" for one decoded without a draft."""
    states: dict[int, str] = {}
    path: list[int] = []
    for step in trace.steps:
        for event in step.events:
            if isinstance(event, Verdict):
                states[event.node] = event.status
            elif isinstance(event, Commit):
                path += event.nodes
    written = ("accepted", "resampled", "bonus")
    return [states[node] if states.get(node) in written else "" for node in path]


def by_entropy(folded: list[LaneFacts]) -> list[dict]:
    """Acceptance of the tested tokens by the target's entropy in bits; only bins that occur."""
    tests = [
        (facts.entropy(test.parent) / math.log(2), test.accepted)
        for facts in folded
        for made in facts.rounds
        for test in made.tests
        if facts.entropy(test.parent) is not None
    ]
    bins = []
    for low, high in zip(ENTROPIES, ENTROPIES[1:], strict=False):
        here = [accepted for bits, accepted in tests if low <= bits < high]
        if here:
            counts = {"tested": len(here), "accepted": sum(here), "share": fmean(here)}
            bins.append({"low": low, "high": None if math.isinf(high) else high} | counts)
    return bins


def by_position(folded: list[LaneFacts]) -> list[dict]:
    """Acceptance of the tested tokens by their position in the text, in bins of BIN tokens, with 95 %
    intervals (Wilson).
    """
    bins: dict[int, list[bool]] = {}
    for facts in folded:
        for made in facts.rounds:
            for test in made.tests:
                bins.setdefault((facts.nodes.position[test.node] - 1) // BIN, []).append(test.accepted)
    rows = []
    for at in sorted(bins):
        tested, accepted = len(bins[at]), sum(bins[at])
        low, high = wilson(accepted, tested)
        counts = {"tested": tested, "accepted": accepted, "share": accepted / tested}
        rows.append({"first": at * BIN + 1, "last": (at + 1) * BIN, **counts, "low": low, "high": high})
    return rows


def hits(guesses: Guesses, greedy: bool) -> list[float | None]:
    """The probability that the guess at each position is accepted: 1 or 0 if greedy."""
    return [None if r is None else float(r) for r in guesses.right] if greedy else list(guesses.overlap)


def along(texts: Sequence[Text], draft: Measured, greedy: bool) -> list[dict]:
    """Acceptance of a single guess at every position, in bins of BIN tokens; empty without guesses."""
    bins: dict[int, list[float]] = {}
    for guesses in draft.guesses or ():
        for at, hit in enumerate(hits(guesses, greedy)):
            if hit is not None:
                bins.setdefault(at // BIN, []).append(hit)
    return [
        {"first": at * BIN + 1, "last": (at + 1) * BIN, "places": len(here), "share": fmean(here)}
        for at, here in sorted(bins.items())
    ]


def groups(rejections: list[dict], name: str) -> list[dict]:
    """Rejections by the rejected token (`token`) or by the end of the text before it (`before`), the largest
    group first: [{name, rejections, causes, example, places: [[prompt, place], ...]}], at most TOP.
    """
    by_key: dict[str, list[dict]] = {}
    for one in rejections:
        key = one["token"] if name == "token" else last_word(one["context"])
        by_key.setdefault(key, []).append(one)
    made = [
        {
            "name": key,
            "rejections": len(group),
            "causes": counted(group),
            "example": quoted(group[0]),
            "places": [[one["prompt"], one["place"]] for one in group if one["place"] is not None][:PLACES],
        }
        for key, group in by_key.items()
    ]
    return sorted(made, key=lambda group: -group["rejections"])[:TOP]


def last_word(context: str) -> str:
    """The last word of a text, its white space shown; a line break stands for itself."""
    if context.endswith("\n"):
        return "↵"
    return context.split()[-1] if context.split() else "␣"


def side_by_side(texts: Sequence[Text], a: Measured, b: Measured, greedy: bool) -> dict:
    """Two drafters at all positions at which both can guess: mean acceptance of each, the standard error of
    the difference over prompts, and, if greedy, how often both, one or neither is right.

    {names, places, shares, difference, error, both, only_a, only_b, neither, examples_a, examples_b}. An
    example is {prompt, place, context, token, guess, q}; those at which the wrong drafter is most confident
    come first.
    """
    pairs, gaps, examples = [], [], {True: [], False: []}
    for at, text in enumerate(texts):
        sides = [hits(one.guesses[at], greedy) for one in (a, b)]
        here = [(i, x, y) for i, (x, y) in enumerate(zip(*sides, strict=True)) if None not in (x, y)]
        pairs += [(x, y) for _, x, y in here]
        if here:
            gaps.append(fmean(x - y for _, x, y in here))
        for place, x, y in here:
            if x != y:
                wrong = (b if x > y else a).guesses[at]
                examples[x > y].append(example(at, text, place, wrong) | {"gap": abs(x - y)})
    made = {"names": [a.name, b.name], "places": len(pairs)}
    if not pairs:
        return made
    made["shares"] = [fmean(x for x, _ in pairs), fmean(y for _, y in pairs)]
    made["difference"] = made["shares"][0] - made["shares"][1]
    made["error"] = stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None
    if greedy:
        counts = Counter(pairs)
        keys = {"both": (1.0, 1.0), "only_a": (1.0, 0.0), "only_b": (0.0, 1.0), "neither": (0.0, 0.0)}
        made |= {name: counts[key] for name, key in keys.items()}
    for name, side in (("examples_a", True), ("examples_b", False)):
        made[name] = sorted(examples[side], key=lambda one: (-one["gap"], -one["q"]))[: 2 * EXAMPLES]
    return made


def example(at: int, text: Text, place: int, wrong: Guesses) -> dict:
    """A position at which a drafter guesses wrong, with the text before it."""
    before = "".join(text.tokens[:place]).replace("␣", " ").replace("↵", "\n")
    return {
        "prompt": at,
        "place": place,
        "context": end_of(text.prompt + before, CONTEXT),
        "token": text.tokens[place],
        "guess": wrong.guess[place],
        "q": wrong.q[place],
    }
