"""The result of a run in a sentence or two: which text is likeliest, what each cost, where they differ.

Takes lanes as `visualizers.analysis.comparison` makes them.
"""

import math

from decoders.trace.number_format import many

SAME = 0.005  # nats per token: means that are written alike
LONGEST = 36  # characters of a label in a sentence: one with all its parameters would hide the rest


def sentence(lanes: list[dict], points: list[dict]) -> str:
    """The result, empty as long as a lane has not ended or nothing was decoded.

    lanes: see `comparison.one_lane`; points: those of `comparison.likelihood`.
    """
    if not lanes or any(lane["ended"] is None or not lane["tokens"] for lane in lanes):
        return ""
    if len(lanes) == 1:
        return alone(lanes[0])
    said = [*equal(lanes), likeliest(lanes, points), difference(lanes)]
    return " ".join(one for one in said if one)


def alone(lane: dict) -> str:
    """Tokens, target forwards, and the mean log-probability of a single lane."""
    tokens, forwards = len(lane["tokens"]) - lane["given"], lane["race"]["forwards"][-1]
    cost = f" in {many(round(forwards), 'target forward')}" if forwards else ""
    rate = f", {tokens / forwards:.2f} per forward" if forwards and tokens else ""
    known = None not in lane["logprob"] and lane["logprob"]
    mean = (
        f"; mean log p per token {signed(math.fsum(lane['logprob']) / len(lane['logprob']))}" if known else ""
    )
    return f"{many(tokens, 'token')}{cost}{rate}{mean}."


def equal(lanes: list[dict]) -> list[str]:
    """For each lane with the reference's text, at what cost it has written it: the one with fewer forwards
    comes first.
    """
    reference = next((lane for lane in lanes if lane["relation"] is None), None)
    made = []
    for lane in lanes:
        if reference is None or lane is reference or not lane["relation"]["equal"]:
            continue
        own, other = (round(one["race"]["forwards"][-1]) for one in (lane, reference))
        first, second = (reference, lane) if 0 < other < own else (lane, reference)
        text = f"{named(first, lanes)} writes the text of {named(second, lanes)}"
        if own and other and own != other:
            text += f" in {min(own, other)} instead of {many(max(own, other), 'target forward')}"
        made.append(text + ".")
    return made


def likeliest(lanes: list[dict], points: list[dict]) -> str:
    """Whose text has the highest mean log-probability per token, at equal length; empty if none leads."""
    means = {point["lane"]: point["logprob"] for point in points}
    if len(means) < len(lanes) or None in means.values():
        return ""
    ranked = sorted(lanes, key=lambda lane: -means[lane["lane"]])
    best = [lane for lane in ranked if means[ranked[0]["lane"]] - means[lane["lane"]] < SAME]
    others = ranked[len(best) :]
    if not others:
        return ""
    against = ", ".join(f"{named(lane, lanes)} {signed(means[lane['lane']])}" for lane in others)
    whose = " and ".join(named(lane, lanes) for lane in best)
    return (
        f"The text of {whose} is likeliest: mean log p per token {signed(means[best[0]['lane']])}; {against}."
    )


def difference(lanes: list[dict]) -> str:
    """Where the first two texts part."""
    places = [lane["parting"]["position"] for lane in lanes if lane["parting"]]
    return f"The first difference is at token {min(places)}." if places else ""


def named(lane: dict, lanes: list[dict]) -> str:
    """Its label, or its number where another lane has the same label or the label is long."""
    alike = sum(other["label"] == lane["label"] for other in lanes) > 1
    return f"lane {lane['lane']}" if alike or len(lane["label"]) > LONGEST else lane["label"]


def signed(value: float) -> str:
    """`−0.59`."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
