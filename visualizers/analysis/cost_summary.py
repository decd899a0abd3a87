"""The cost strip: what a lane cost, in words, for the page and the command line; and the table of all costs.

A number that a lane does not have is left out of the strip and is an em dash in the table, never 0: a lane
that never drafted has no acceptance rate.
"""

import math

from decoders.trace.costs import METRICS, Costs
from decoders.trace.endings import WHOLE

MISSING = "—"
DEFINITIONS = {
    "steps": "Turns of the strategy's own loop: one per token, beam update or iteration.",
    "rounds": "Rounds that sent a draft to the target, which verified it in one forward.",
    "target forwards": "How often the target model ran, the prompt's own pass included; a pass "
    "through a part of its layers counts as that part.",
    "draft forwards": "How often the draft model ran.",
    "tokens / target forward": "New tokens divided by target forwards; above 1 beats token by token.",
    "drafted tokens used": "Accepted divided by drafted tokens, which are those sent to the target for "
    "verification; this is not a measure of speed.",
    "tokens/s": "New tokens divided by the lane's own computing time in seconds.",
    "Σ log p": "Sum of the new tokens' natural log-probabilities under the target, before any processor.",
    "lossy": "Mean total variation distance of tested tokens' distributions from the target's, from 0 to 1.",
    "KV slots": "Slots of the key-value cache that the lane holds, one for each token it keeps scored.",
}

# The four numbers that a lane is about, which come first.
OF_DRAFTS = ("tokens / target forward", "drafted tokens used", "rounds", "tokens/s")
OF_RELAXED = ("tokens / target forward", "lossy", "drafted tokens used", "tokens/s")
OF_SEARCH = ("tokens / target forward", "Σ log p", "steps", "tokens/s")
OF_OTHERS = ("tokens / target forward", "target forwards", "Σ log p", "tokens/s")

SO_FAR = ", best so far"  # after a name, where tokens of the best candidate count that are not final yet
DEFINITIONS |= {
    name + SO_FAR: f"{DEFINITIONS[name][:-1]}, counted for the best candidate: it is not final yet."
    for name in ("tokens / target forward", "tokens/s", "Σ log p")
}
COUNTS_BEST = ("tokens / target forward", "tokens/s", "Σ log p", "log p / token")  # of the table
ONE = {name: name[:-1] for name in ("steps", "rounds", "target forwards", "draft forwards", "KV slots")}
DEFINITIONS |= {one: DEFINITIONS[name] for name, one in ONE.items()}

# Every cost and metric of a lane, for tables: name -> where it comes from and its definition in one sentence.
TABLE = {
    "tokens / target forward": ("derived", DEFINITIONS["tokens / target forward"]),
    "steps": ("measured", DEFINITIONS["steps"]),
    "target forwards": ("measured", DEFINITIONS["target forwards"]),
    "draft forwards": ("measured", DEFINITIONS["draft forwards"]),
    "lens forwards": (
        "measured",
        "How often a model ran only to draw a picture; no other number includes these runs.",
    ),
    "target tokens": (
        "measured",
        "Tokens that the target evaluated, as if the lane were alone, each counted by the share of layers.",
    ),
    "draft tokens": ("measured", "Tokens that the draft model evaluated, as if the lane were alone."),
    "shared tokens": ("measured", "Of the evaluated tokens, those that another lane had evaluated already."),
    "new tokens": ("measured", "Tokens that are final."),
    "seconds": ("measured", "The lane's own computing time, without the turns of other lanes."),
    "tokens/s": ("derived", DEFINITIONS["tokens/s"]),
    "Σ log p": ("derived", DEFINITIONS["Σ log p"]),
    "log p / token": ("derived", "Σ log p divided by the new tokens."),
    "Σ log kept": (
        "measured",
        "Sum of the natural logarithms of the probability that the constraint kept at each new token: the "
        "text's importance weight; a dash without a constraint.",
    ),
    "valid": (
        "derived",
        "Whether the text ended where its constraint lets it end; no if it was cut off. A dash without a "
        "constraint, and before the lane has ended.",
    ),
    "proposed": ("measured", "Drafted tokens: those that were sent to the target for verification."),
    "accepted": ("measured", "Drafted tokens that were accepted."),
    **{name: ("derived", f"{METRICS[name][0].upper()}{METRICS[name][1:]}.") for name in METRICS},
    "KV slots": ("measured", DEFINITIONS["KV slots"]),
}
COLUMNS = [{"name": name, "how": how, "title": title} for name, (how, title) in TABLE.items()]


def table_row(costs: Costs, ended: str | None = None) -> list[dict]:
    """`{value, label}` for each of COLUMNS; None and a dash for what the lane does not have. `ended`: why the
    lane is over.

    Of lists (the histogram, counts round by round) the label shows eight entries at most.
    """
    drafts = bool(costs.proposed)
    tokens, logprob = best_so_far(costs)
    so_far = dict.fromkeys(COUNTS_BEST, SO_FAR) if costs.ahead else {}
    values = {
        "target forwards": costs.target_forwards or None,  # unknown for an imported lane
        "target tokens": costs.target_tokens or None,
        "draft forwards": costs.draft_forwards or None,
        "lens forwards": costs.lens_forwards or None,
        "draft tokens": costs.draft_tokens or None,
        "tokens / target forward": tokens / costs.target_forwards if costs.target_forwards else None,
        "tokens/s": tokens / costs.seconds if tokens and costs.seconds > 0 else None,
        "Σ log p": logprob,
        "log p / token": None if logprob is None else logprob / tokens,
        "Σ log kept": costs.log_kept,
        "valid": None if costs.log_kept is None or ended is None else int(ended in WHOLE),
        "proposed": costs.proposed if drafts else None,
        "accepted": costs.accepted if drafts else None,
        **dict.fromkeys(METRICS),
        **costs.metrics(ended),
        "KV slots": costs.slots,
    }
    cells = []
    for name in TABLE:
        value = values[name] if name in values else getattr(costs, name.replace(" ", "_"))
        label = MISSING if value is None else WRITE.get(name, whole)(value) + so_far.get(name, "")
        cells.append({"value": value, "label": label})
    return cells


def strip(costs: Costs) -> list[dict]:
    """The cost strip's entries `{name, value, label, title}`: first the four that the lane is about, then the
    others that it has.

    `value` is the plain number, `label` what is printed, `title` one sentence that defines it.
    """
    tokens, logprob = best_so_far(costs)
    so_far = SO_FAR if costs.ahead else ""
    gain = tokens / costs.target_forwards if costs.target_forwards else None
    known = {
        "tokens / target forward": (gain, two),
        "lossy": (costs.mean_total_variation if costs.variations else None, share),  # relaxed verifiers
        "rounds": (len(costs.rounds) or None, whole),
        "steps": (None if costs.rounds else costs.steps, whole),
        "target forwards": (costs.target_forwards or None, parted),  # an imported lane has none
        "draft forwards": (costs.draft_forwards or None, parted),
        "drafted tokens used": (costs.accepted / costs.proposed if costs.proposed else None, share),
        "tokens/s": (tokens / costs.seconds if tokens and costs.seconds > 0 else None, speed),
        "Σ log p": (logprob, signed),
        "KV slots": (costs.slots, whole),
    }
    entries = []
    for name in dict.fromkeys((*about(costs), *known)):
        value, write = known[name]
        if value is not None:
            full = name + so_far if name in COUNTS_BEST else ONE.get(name, name) if value == 1 else name
            entries.append({"name": full, "value": value, "label": write(value), "title": DEFINITIONS[full]})
    return entries


def in_words(costs: Costs, between: str = " · ") -> str:
    """The strip as text: `1.00 tokens / target forward · 40 steps`."""
    return between.join(f"{entry['label']} {entry['name']}" for entry in strip(costs))


def about(costs: Costs) -> tuple[str, ...]:
    """The names of the four numbers that a lane is about."""
    if costs.variations:
        return OF_RELAXED
    if costs.rounds:
        return OF_DRAFTS
    return OF_OTHERS if costs.best is None else OF_SEARCH


def best_so_far(costs: Costs) -> tuple[int, float | None]:
    """The tokens of what a lane would output now, and the sum of their log-probabilities: the committed ones
    and, of a search, those of its best candidate. The sum is None without tokens, and where one is unknown.
    """
    ahead = costs.ahead
    tokens = costs.new_tokens + len(ahead)
    if not tokens or costs.unknown:
        return tokens, None
    return tokens, costs.logprob + math.fsum(costs.logprobs.get(n, 0.0) for n in ahead)


def whole(value: float) -> str:
    """1234567 as `1,234,567`."""
    return f"{value:,.0f}"


def parted(value: float) -> str:
    """As `whole`, with one decimal where only a part of the layers ran."""
    return whole(value) if value == int(value) else f"{value:,.1f}"


def two(value: float) -> str:
    """Two decimals."""
    return f"{value:.2f}"


def share(value: float) -> str:
    """`.67` for two thirds, `1.00` for all."""
    return f"{value:.2f}".removeprefix("0")


def speed(value: float) -> str:
    """Whole tokens per second, one decimal below ten."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def signed(value: float) -> str:
    """One decimal, with a true minus sign; no minus before a zero."""
    return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")


def three(value: float) -> str:
    """Three decimals, with a true minus sign."""
    return f"{value:.3f}".replace("-", "−")


def listed(values: list[int]) -> str:
    """`4 2 0 5`, cut after eight with `…`."""
    return " ".join(map(str, values[:8])) + (" …" if len(values) > 8 else "")


WRITE = {
    "seconds": three,
    "tokens / target forward": two,
    "tokens/s": speed,
    "Σ log p": signed,
    "log p / token": three,
    "Σ log kept": signed,
    "valid": lambda value: "yes" if value else "no",
    "mean_acceptance_length": two,
    "mean_acceptance_length_uncut": two,
    "mean_total_variation": three,
    "draft_acceptance_rate": share,
    "acceptance_histogram": listed,
    "per_step_drafted": listed,
    "per_step_accepted": listed,
}
