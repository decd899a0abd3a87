"""Places in searches and parallel decoders: repetitions, positions that settled, positions that waited."""

import math

from decoders.trace.events import Cell, Distribution
from decoders.trace.scores import Rank, ScoreName
from explorer.lessons.facts import Reading
from explorer.lessons.stops import Lanes, Place, place
from visualizers.analysis.lane_stats import Token

MAX_QUOTED = 12  # tokens of a phrase that are quoted


@place
def first_repeat(lanes: Lanes, lane: int, n: int = 4) -> Place | None:
    """Where the text first repeats n tokens; `p_before` and `p`: their mean probabilities at the
    first and the second time.
    """
    own, seen = lanes[lane], {}
    text = [t.token for t in own.tokens]
    for i in range(len(text) - n + 1):
        gram = tuple(text[i : i + n])
        if i - seen.setdefault(gram, i) >= n:
            return repeat(own, lane, seen[gram], i, n)
    return None


def repeat(own: Reading, lane: int, first: int, second: int, n: int) -> Place:
    """The whole length of a repetition in the final text; while a search runs, its best text may still be
    a different one. At most MAX_QUOTED tokens of it are quoted.
    """
    text, length = [t.token for t in own.tokens], n
    while second + length < len(text) and text[first + length] == text[second + length]:
        length += 1
    new, again = (own.tokens[start : start + min(length, MAX_QUOTED)] for start in (first, second))
    values = {
        "phrase": phrase(own, new) + (" …" if length > MAX_QUOTED else ""),
        "length": length,
        "first": first + 1,
        "second": second + 1,
        "p_before": mean_p(new),
        "p": mean_p(again),
    }
    return Place(lane, own.last, {lane: [t.node for t in (*new, *again)]}, values)


def phrase(own: Reading, tokens: list[Token]) -> str:
    """Committed tokens as plain text."""
    text = b"".join(own.trace.vocabulary.get(t.token, b"") for t in tokens).decode("utf-8", "replace")
    return " ".join(text.split())


def mean_p(tokens: list[Token]) -> float:
    """The geometric mean of the tokens' probabilities: what each contributes to the text's probability."""
    return math.exp(math.fsum(t.logprob for t in tokens) / len(tokens))


@place
def penalised(lanes: Lanes, lane: int) -> Place | None:
    """Where contrastive search first passed over its most likely candidate, and the similarity of both."""
    own = lanes[lane]
    for step in own.trace.steps:
        scores = [score for score in step.of(Rank) if score.name == ScoreName.CONTRASTIVE]
        if not scores:
            continue
        taken, first = min(scores, key=lambda s: s.rank), max(scores, key=lambda s: s.parts["p"])
        if taken is not first:
            values = {"token": own.text_of(taken.node), "first": own.text_of(first.node)}
            values |= {"p": taken.parts["p"], "p_first": first.parts["p"], "before": own.before(taken.node)}
            values |= {"similarity": taken.parts["penalty"], "similarity_first": first.parts["penalty"]}
            return Place(
                lane, step.index, {lane: [taken.node, first.node]}, values | {"candidates": len(scores)}
            )
    return None


@place
def vote(lanes: Lanes, lane: int) -> Place | None:
    """Minimum Bayes risk: the sample that was chosen, and the one with the highest probability."""
    own = lanes[lane]
    scores = [s for step in own.trace.steps for s in step.of(Rank) if s.name == ScoreName.EXPECTED_UTILITY]
    if not scores:
        return None
    best, likeliest = min(scores, key=lambda s: s.rank), max(scores, key=lambda s: s.parts["sum_logprob"])
    values = {"samples": len(scores), "utility": best.total, "logprob": best.parts["sum_logprob"]}
    values |= {"rank": likeliest.rank, "utility_other": likeliest.total}
    values |= {"logprob_other": likeliest.parts["sum_logprob"], "lowest": min(s.total for s in scores)}
    return Place(lane, own.last, {lane: [best.node]}, values)


@place
def first_finished(lanes: Lanes, lane: int) -> Place | None:
    """The first candidate that a beam search finished, beside the one that it returned: `score` is the sum of
    log-probabilities after the length penalty.
    """
    own = lanes[lane]
    done = [
        (step.index, s)
        for step in own.trace.steps
        for s in step.of(Rank)
        if s.name == ScoreName.LENGTH_PENALISED
    ]
    ended = [(at, score) for at, score in done if "length" in score.parts]
    best = next((score for _, score in done if score.rank == 1), None)
    if not ended or best is None:
        return None
    at, early = ended[0]
    won = next(score for _, score in ended if score.node == best.node)
    values = {"finished": len(ended), "same": int(won.node == early.node)}
    for name, score in (("", early), ("_won", won)):
        length, total = score.parts["length"], score.parts["sum"]
        values |= {"length" + name: round(length), "sum" + name: total, "score" + name: score.total}
    return Place(lane, at, {lane: [early.node]}, values)


@place
def turned_back(lanes: Lanes, lane: int) -> Place | None:
    """Where a best-first search first opened a shorter text than before: `near` tokens instead of `far`."""
    own, before = lanes[lane], None
    for step in own.trace.steps:
        opened = [offer.node for offer in step.of(Distribution) if offer.view == "target"]
        if not opened:
            continue
        depth = own.position(opened[-1])
        if before is not None and depth < before:
            values = {
                "far": before,
                "near": depth,
                "opened": step.index + 1,
                "token": own.text_of(opened[-1]),
            }
            return Place(lane, step.index, {lane: [opened[-1]]}, values)
        before = depth
    return None


@place
def iteration(lanes: Lanes, lane: int, settled: int) -> Place | None:
    """The first iteration in which at least this many positions became final."""
    own, counts, states = lanes[lane], {}, {}
    for step, cell in own.cells:
        if cell.state != "guess":
            states.setdefault(step, []).append(cell.state)
            counts[step] = counts.get(step, 0) + (cell.state == "settled")
    for step, count in counts.items():
        if count >= settled:
            seen = len(states[step])
            values = {"settled": count, "open": seen - count, "seen": seen, "iteration": step + 1}
            return Place(lane, step, {}, values)
    return None


@place
def waiting(lanes: Lanes, lane: int) -> Place | None:
    """The position that waited for the most distant other position; the first one in a tie."""
    own = lanes[lane]
    if not own.waits:
        return None
    step, link = max(own.waits, key=lambda wait: wait[1].target - wait[1].source)
    trunk = len(own.trace.prompt)
    values = {
        "target": link.target - trunk + 1,
        "source": link.source - trunk + 1,
        "away": link.target - link.source,
        "token": next(own.word(c.token) for _, c in own.cells if final(c, link.target)),
        "pairs": len(own.waits),
        "iteration": step + 1,
    }
    return Place(lane, step, {}, values)


def final(cell: Cell, position: int) -> bool:
    """Whether the cell holds the final token of a position."""
    return cell.state == "settled" and cell.position == position
