"""What an examination found, in sentences, as text and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict

from decoders.trace.number_format import many
from explorer.doctor.examining import Examination
from visualizers.analysis.draft_diagnosis import Along, Cause, Finding, interval, mean_overlap
from visualizers.analysis.draft_surface import STOPS, Surface

SHOWN = 3  # places that a sentence quotes
CONTEXT = 5  # tokens before a place
LATER = {-2: "two tokens back", -1: "one token back", 1: "one token ahead", 2: "two tokens ahead"}


def verdict(found: Examination) -> str:
    """What is wrong, or that nothing is, in one sentence."""
    if found.findings:
        return said(found.findings[0], found)
    return healthy(found)


def sentences(found: Examination) -> list[str]:
    """Everything that was found, the most important first."""
    rest = [said(one, found) for one in found.findings[1:]]
    return [verdict(found), *rest, *agreement(found), *gained(found), *recommended(found)]


def healthy(found: Examination) -> str:
    """That nothing is wrong, with the number that says so."""
    known = interval(found.texts)
    if known is not None:
        mean, low, high = known
        # recordings name the most likely tokens only
        where = "its target's own texts" if asks_own(found) else "the recorded texts"
        least = "" if asks_own(found) else "at least "
        return (
            f"Healthy: along {where} a token drawn from the draft is accepted with probability "
            f"{least}{mean:.2f} ({low:.2f} to {high:.2f}), and no other way of reading does clearly better."
        )
    drafted, accepted = (
        sum(one.get(name) or 0 for _, one in found.counts)
        for name in ("num_draft_tokens", "num_accepted_tokens")
    )
    if drafted:
        return (
            f"{accepted:,} of {many(drafted, 'drafted token')} were accepted, {accepted / drafted:.0%}. "
            "Counts show no more; record traces, or name both models, to see why the others were not."
        )
    return "Nothing was drafted, so nothing can be said."


def asks_own(found: Examination) -> bool:
    """Whether the texts are canaries, and not what an engine was asked."""
    return any(not text.own for text in found.texts)


def said(one: Finding, found: Examination) -> str:
    """A finding in one sentence."""
    if found.engine is not None and one.cause in ENGINE:
        return (
            f"The engine {ENGINE[one.cause](one.shift)}: its draft's distributions overlap with this draft's "
            f"by {one.value:.2f}, and by {one.other:.2f} if this draft reads in the same way."
        )
    return SAID[one.cause](one)


def numerics(one: Finding) -> str:
    return (
        f"Numerics: at {one.count:,} of {many(one.total, 'place')} the draft's row is not a distribution, or "
        "gives all tokens the same probability; try another dtype, and look for an overflow."
    )


def shifted(one: Finding) -> str:
    also = " A residual head without its trained weights does the same." if one.shift < 0 else ""
    return (
        f"Shifted: the draft guesses the token {LATER[one.shift]} from the one it is asked for (overlap "
        f"{one.other:.2f} there, {one.value:.2f} at its own place); a position or a hidden state is "
        f"off.{also}"
    )


def mapped(one: Finding) -> str:
    how = f"the draft is certain where its target is (correlation {one.low:.2f}), but of other tokens"
    if one.other:
        how += f", the same ones each time at {one.other:.0%} of the places that can be judged"
    if one.shift:
        how = f"the numbers of the draft's tokens are off by {-one.shift:+d} at {one.other:.0%} of the places"
    return f"Vocabulary or map (d2t): {how}; {one.value:.0%} of its guesses are right."


def states(one: Finding) -> str:
    return (
        f"Hidden states: the draft overlaps with its target by {one.value:.2f}, and by {one.other:.2f} if it "
        f"reads the target's states one token {'later' if one.shift > 0 else 'earlier'}."
    )


def captured(one: Finding) -> str:
    return (
        f"Wrong captured layers: the draft overlaps with its target by {one.value:.2f}, and by "
        f"{one.other:.2f} if it reads {layers(one.shift)}."
    )


def bos(one: Finding) -> str:
    how = "begins with the draft's BOS token" if one.shift > 0 else "leaves the BOS token out"
    return (
        f"BOS: the draft overlaps with its target by {one.value:.2f}, and by {one.other:.2f} if its text "
        f"{how}."
    )


def template(one: Finding) -> str:
    return (
        f"Chat template: the draft overlaps with its target by {one.value:.2f} in the target's template, and "
        f"by {one.other:.2f} in its own; train or serve both with one template."
    )


def other_draft(one: Finding) -> str:
    return (
        f"Another draft: the engine's distributions overlap with this draft's by {one.value:.2f} where the "
        "same computation gives 1, and no other way of reading explains it; the engine has loaded other "
        "weights, or quantised them."
    )


def window(one: Finding) -> str:
    if not one.at:
        return (
            f"Past its window: in a long context {one.other:.0%} of the drafted tokens are accepted, in "
            f"short ones {one.value:.0%}."
        )
    return (
        f"Past its window: from about token {one.at:,} on the draft overlaps with its target by "
        f"{one.other:.2f}, before it by {one.value:.2f}."
    )


def dummy(one: Finding) -> str:
    return (
        f"Dummy drafts: from about token {one.at:,} on the draft guesses one and the same token at "
        f"{one.count:,} of {many(one.total, 'place')}; it is past its own window."
    )


def noise(one: Finding) -> str:
    return (
        f"Noise: the draft agrees with its target no more at its own place (overlap {one.value:.2f}) than at "
        f"unrelated ones ({one.other:.2f}); its weights were not loaded, or belong to another model."
    )


def greedy(one: Finding) -> str:
    return (
        f"Greedy drafts: {one.count:,} of {many(one.total, 'token')} drafted at a temperature above 0 count "
        "as certain (q = 1), so each is accepted with p alone; drafts drawn from q are accepted with Σ "
        "min(p, q)."
    )


def relaxed(one: Finding) -> str:
    if one.other:
        return (
            f"Relaxed acceptance: {one.count:,} of {many(one.total, 'tested token')} were accepted where the "
            f"exact test accepts {one.other:.0f} on average, so the text is not the target's."
        )
    return (
        f"Relaxed acceptance: the verdicts on {one.count:,} of {many(one.total, 'tested token')} contradict "
        "the exact test, min(1, p / q), so the text is not the target's."
    )


def too_long(one: Finding) -> str:
    return (
        f"Too long: drafts of {one.at} tokens are {one.value:.2f} × slower than the best setting "
        f"({one.low:.2f} to {one.high:.2f}), which drafts at most {one.shift}."
    )


def weak(one: Finding) -> str:
    return (
        "Weak, and not broken in any way that is tested here: the draft overlaps with its target by "
        f"{one.value:.2f}; it was trained too little, or on other texts."
    )


def reference(one: Finding) -> str:
    return (
        f"Below its reference: drafts of {many(one.at, 'token')} gain {one.value:.2f} tokens per round "
        f"({one.low:.2f} to {one.high:.2f}), the reference says {one.other:.2f}, on its own prompts."
    )


def rejected(one: Finding) -> str:
    return (
        f"Nearly nothing is accepted: {one.count:,} of {many(one.total, 'drafted token')}. Counts cannot "
        "tell noise, a shift and a wrong map apart; record traces, or name both models."
    )


SAID = {
    Cause.NUMERICS: numerics,
    Cause.SHIFTED: shifted,
    Cause.MAP: mapped,
    Cause.STATES: states,
    Cause.LAYERS: captured,
    Cause.BOS: bos,
    Cause.TEMPLATE: template,
    Cause.OTHER_DRAFT: other_draft,
    Cause.WINDOW: window,
    Cause.DUMMY: dummy,
    Cause.NOISE: noise,
    Cause.GREEDY: greedy,
    Cause.RELAXED: relaxed,
    Cause.LENGTH: too_long,
    Cause.WEAK: weak,
    Cause.REFERENCE: reference,
    Cause.REJECTED: rejected,
}


def layers(shift: int) -> str:
    """Which layers a draft reads instead."""
    return {1: "the layers above", -1: "the layers below"}.get(shift, "the same layers in reverse order")


ENGINE = {  # what an engine does, in a recording, if ours does the same when it reads so
    Cause.STATES: lambda shift: (
        f"reads the target's states of one token {'later' if shift > 0 else 'earlier'} (hidden-state offset)"
    ),
    Cause.LAYERS: lambda shift: f"captures {layers(shift)} (wrong captured layers)",
    Cause.BOS: lambda shift: f"shows the draft its text {'with' if shift > 0 else 'without'} the BOS token",
    Cause.TEMPLATE: lambda shift: "shows the draft its text in another chat template",
}


def agreement(found: Examination) -> Iterator[str]:
    """How far a recorded engine computes what this draft computes, if they agree."""
    if found.engine is not None and not any(
        one.cause in {*ENGINE, Cause.OTHER_DRAFT} for one in found.findings
    ):
        yield f"The engine computes this draft's distributions: they overlap by {found.engine:.3f}."


def gained(found: Examination) -> Iterator[str]:
    """Tokens per round."""
    if found.gained is None:
        return
    one = found.gained
    bounds = f" ({one.low:.2f} to {one.high:.2f})" if one.low < one.mean else ""
    yield (
        f"Drafts of up to {many(found.drafted, 'token')} gain {one.mean:.2f} tokens per round{bounds}, "
        f"over {many(one.rounds, 'round')}."
    )


def recommended(found: Examination) -> Iterator[str]:
    """The best setting, with its gain, and what breaks even."""
    if found.surface is None:
        return
    one = found.surface
    k, s = one.best
    stop = f", stopping after a token below {STOPS[s]:g}" if s else ""
    best = one.speed[k][s]
    yield (
        f"Recommended: at most {many(k + 1, 'drafted token')}{stop}: {best:.2f} × plain decoding here, "
        f"{one.gain:.2f} × the speed of {one.own} ({one.low:.2f} to {one.high:.2f})"
        + (", which may be chance." if one.low <= 1.0 else ".")
    )
    if best < 1.0:
        yield "No setting is faster than decoding without a draft on this machine."
    yield break_even(one)


def break_even(one: Surface) -> str:
    """What a further drafted token costs, and what it must bring to pay."""
    cost = one.cost
    per_token = cost.draft + (cost.verify - cost.plain) / cost.longest
    return (
        f"A drafted token costs {per_token / cost.plain:.2f} of a plain forward, "
        f"{cost.draft / cost.plain:.2f} of it for drafting; one more pays while it is accepted more often "
        "than that times the speed."
    )


def quoted(one: Finding, found: Examination) -> list[str]:
    """The places that show a finding, each with the text before it."""
    lines = []
    for text, place in one.places[:SHOWN]:
        if text >= len(found.texts) or place >= len(found.texts[text].tokens):
            continue
        own = found.texts[text]
        guess = own.guess[place]
        before = "".join(own.tokens[max(0, place - CONTEXT) : place])
        target = found.words.get(own.best[place], "?")
        drafted = (
            "nothing" if guess is None else f"“{found.words.get(guess, f'#{guess}')}” ({own.q[place]:.2f})"
        )
        lines.append(
            f"{own.name}, token {own.first + place + 1:,}: after “{before}” the target's first choice is "
            f"“{target}” ({own.sure[place]:.2f}), the draft's {drafted}"
        )
    return lines


def canary_rows(found: Examination) -> list[list[str]]:
    """The table of texts: name, what it asks for, the target's own certainty of it, overlap, and agreement;
    of counts: name, drafted, accepted, share.
    """
    return [canary_row(text) for text in found.texts]


def canary_row(text: Along) -> list[str]:
    """The cells of a text."""
    mean = mean_overlap(text)
    asked = [guess == best for guess, best in zip(text.guess, text.best, strict=True) if guess is not None]
    return [
        text.name,
        text.asks,
        f"{len(text.tokens):,}",
        f"{sum(text.knows) / max(1, len(text.knows)):.2f}",
        "—" if mean is None else f"{mean:.2f}",
        f"{sum(asked) / len(asked):.0%}" if asked else "—",
    ]


HEADERS = ("text", "asks for", "tokens", "target's p of the text", "overlap", "same first choice")
COUNT_HEADERS = ("text", "rounds", "drafted", "accepted", "share")


def count_rows(found: Examination) -> list[list[str]]:
    """The table of a server's counts."""
    rows = []
    for name, one in found.counts:
        rounds, drafted, accepted = (
            one.get(key) for key in ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
        )
        share = f"{accepted / drafted:.0%}" if drafted and accepted is not None else "—"
        rows.append([name, *("—" if n is None else f"{n:,}" for n in (rounds, drafted, accepted)), share])
    return rows


def summary(found: Examination) -> str:
    """What the command line prints."""
    lines = [f"{found.draft} for {found.target}", *sentences(found)]
    for one in found.findings:
        lines += [f"  {line}" for line in quoted(one, found)]
    for headers, rows in ((HEADERS, canary_rows(found)), (COUNT_HEADERS, count_rows(found))):
        if rows:
            lines += ["", *columns([list(headers), *rows])]
    return "\n".join(lines)


def columns(rows: list[list[str]]) -> list[str]:
    """Rows of text in columns."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def as_json(found: Examination) -> dict:
    """Everything that was found, with the sentences."""
    return asdict(found) | {
        "healthy": not found.findings,
        "sentences": sentences(found),
        "evidence": [quoted(one, found) for one in found.findings],
    }
