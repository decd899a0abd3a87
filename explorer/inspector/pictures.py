"""The inspector's pictures as HTML: a distribution as bars, a test of p against q, the stages of a sampler.
Made from the facts of token_facts.py; with `branches`, each row has the button that forces its token.
"""

from decoders.explain.verdicts import status_in_words
from explorer.inspector.parts import bar, branch, of_100, probability, token, track
from explorer.markup import Html, h, joined
from visualizers.views.any_lane.sampler import digits, percent

MANY_STAGES = 5  # with more, those that change nothing are left out and named
ROWS = 9  # tokens shown; the rest is one sum
TINY = 1e-9
DERIVED = "p is what the previous attempt left; q is derived: the draft without the tokens already tried"
ORDER = "one random number on the cumulative probabilities, in vocabulary order"


def pictures(facts: dict, branches: bool) -> Html:
    """The distributions at the token's position: its tests, the sampler's stages, or one distribution."""
    stages, tests = facts["stages"], facts["attempts"]
    if tests:
        shown = [attempt(one, i, len(tests), branches) for i, one in enumerate(tests, 1)]
        return joined([*shown, *map(stage_line, stages)])
    target = [stage for stage in stages if stage["view"] != "draft"]
    draft = [stage for stage in stages if stage["view"] == "draft"][:1]
    if len(target) > 1:
        shown = [sampler(target, facts["draw"], branches), *map(stage_line, target)]
        return joined([*shown, *(offer(stage, branches) for stage in draft)])
    return joined(offer(stage, branches) for stage in [*target, *draft])


def rest(words: str, more: int | None = None) -> Html:
    """The mass of everything that is not listed."""
    return h("p", "rest", f"and {more:,} more: {words}" if more and more > 0 else f"all others: {words}")


def offer(stage: dict, branches: bool) -> Html:
    """One distribution: bars in order, the entropy, and the rank of the chosen token."""
    largest = max([row["p"] for row in stage["rows"]], default=0) or TINY
    rows = [
        h(
            "div",
            "offer-row" + " here" * row["here"],
            token(row["text"]),
            h("span", "bars-of", bar("p", row["p"] / largest)),
            h("span", "number", probability(row["p"])),
            branch(row, branches),
        )
        for row in stage["rows"]
    ]
    others = rest(percent(stage["rest"]), stage["more"]) if stage["rest"] > 0.00005 else None
    return h("section", "offer", stage_line(stage), *rows, others)


def stage_line(stage: dict) -> Html:
    """`model: entropy 2.31 bits · rank 3 · p .0651`."""
    p, rank = stage["p"], stage["rank"]
    place = f"rank {rank}" if rank else {0: "removed", None: ""}.get(p, "below the most likely")
    words = [f"entropy {stage['entropy']:.2f} bits", place, f"p {probability(p)}" if p else ""]
    return h("h3", "fact", stage["title"] + " ", h("span", "", " · ".join(filter(None, words))))


# ---- a test: p filled, q outlined, the residual, the bar with the draw ------------------------------


def attempt(test: dict, number: int, count: int, branches: bool) -> Html:
    """One test of a drafted token: p and q of the tokens, the residual after a rejection, and where u
    fell.
    """
    rows, left = test["rows"], test["residual"] is not None
    drafted = any(row["q"] is not None for row in rows)
    largest = max([x for row in rows for x in (row["p"], row["q"]) if x], default=TINY)
    largest_left = max([row["left"] for row in rows if row["left"]], default=TINY)
    titled = h("span", {"class": "left-title", "title": residual_title(test)}, "residual") if left else None
    head = h(
        "div", "attempt-head", h("span", "", "■ p target  □ q draft" if drafted else "■ p target"), titled
    )
    others = ", ".join(f"{side} {percent(test['rest'][side])}" for side in ("p", "q")[: 1 + drafted])
    title = h(
        "h3",
        "",
        f"Attempt {number} of {count}: ",
        token(test["text"]),
        h("span", "", " " + status_in_words(test["status"])),
    )
    parts = [
        title if count > 1 else None,
        head,
        *(attempt_row(test, row, drafted, largest, largest_left, branches) for row in rows),
        rest(others),
        h("p", "rest", residual_title(test)) if left else None,
        h("p", "rest", DERIVED) if test["derived"] else None,
        test_bar(test) if test["accept"] is not None else None,
        h("p", "why", test["reason"]) if test["reason"] else None,
    ]
    return h("section", {"class": "attempt", "aria-label": f"Test {number}"}, *parts)


def attempt_row(
    test: dict, row: dict, drafted: bool, largest: float, largest_left: float, branches: bool
) -> Html:
    """One token of a test. The numbers of the tested token are rounded so that they agree with each other."""
    shown = test["shown"] if row["mark"] == "tested" else {}
    numbers = [shown.get(side) or probability(row[side]) for side in ("p", "q")[: 1 + drafted]]
    look = {"tested": f" here is-{test['status']}", "own": " is-resampled"}.get(row["mark"], "")
    left = None
    if test["residual"] is not None:
        share = row["left"]
        words = probability(share) if share else "" if share == 0 else "?"
        left = h("span", "left", track("left-bar", (share or 0) / largest_left), h("span", "", words))
    return h(
        "div",
        "offer-row attempt-row" + (" with-left" if left else "") + look,
        token(row["text"]),
        h(
            "span",
            "bars-of",
            bar("p", (row["p"] or 0) / largest),
            bar("q", (row["q"] or 0) / largest) if drafted else None,
        ),
        h("span", "number", " / ".join(numbers)),
        left,
        branch(row, branches),
    )


def residual_title(test: dict) -> str:
    """What the residual is a share of."""
    if test["residual"] != "all":
        return "residual: max(0, p − q), derived, as a share of what is left of the tokens shown"
    return (
        f"residual: max(0, p − q) as a share of all that is left; all others: {percent(test['rest']['left'])}"
    )


def test_bar(test: dict) -> Html:
    """A box from 0 to 1, filled up to the acceptance probability, with a tick at u."""
    share, shown, u = test["accept"], test["shown"], test["u"]
    words = f"accept if u < {shown['accept']}"
    tick, label = None, None
    if u is not None:
        at, end = f"left: {of_100(u)}", " at-end" if u > 0.85 else " at-start" if u < 0.1 else ""
        label = h("span", {"class": "test-u" + end, "style": at}, f"u {shown['u']}")
        tick = h("span", {"class": "test-tick", "style": at})
    fill = h("span", {"class": "test-fill", "style": f"width: {of_100(share)}"})
    look = "test is-accepted" if test["status"] == "accepted" else "test is-rejected"
    spoken = f"{words}, u {shown.get('u')}: {status_in_words(test['status'])}"
    line = h(
        "div", {"class": look, "role": "img", "aria-label": spoken}, h("div", "test-box", fill), label, tick
    )
    otherwise = h("span", "", "else reject") if share < 0.9995 else None
    return h("div", "test-block", line, h("div", "test-foot", h("span", "test-words", words), otherwise))


# ---- a sampler: one column per stage, one row per token ----------------------------------------------------


def sampler(stages: list[dict], draw: dict | None, branches: bool) -> Html:
    """What each processor left of the distribution, and where the draw fell."""
    pairs = zip(stages, stages[1:-1], strict=False)
    still = [stage for before, stage in pairs if same(before, stage)] if len(stages) > MANY_STAGES else []
    shown = [stage for stage in stages if not any(stage is one for one in still)]
    listed = {row["id"]: row for stage in reversed(stages) for row in stage["rows"]}
    order = dict.fromkeys(row["id"] for stage in stages for row in stage["rows"])
    largest = max([row["p"] for stage in shown for row in stage["rows"]], default=0) or TINY
    cells = [h("span"), *(stage_title(stage) for stage in shown), h("span")]
    for row in [listed[one] for one in order][:ROWS]:
        cells.append(h("span", "stage-token" + " here" * row["here"], token(row["text"])))
        cells += [*stage_cells(row, shown, largest), branch(row, branches) or h("span")]
    views = any(stage["view"] == "unwanted" for stage in stages)
    title = "What each view offered, and the result " if views else "What each processor left "
    entropies = " → ".join(f"{stage['entropy']:.2f}" for stage in shown)
    silent = "changed nothing: " + ", ".join(stage["title"] for stage in still)
    return h(
        "section",
        "offer",
        h("h3", "", title, h("span", "", f"entropy {entropies} bits")),
        h("div", {"class": "sampler", "style": f"--stages: {len(shown)}"}, *cells),
        rest(", ".join(f"{stage['title']} {percent(stage['rest'])}" for stage in shown)),
        h("p", "rest", silent) if still else None,
        drawn(draw, stages[-1]) if draw else None,
    )


def same(one: dict, other: dict) -> bool:
    """Whether two stages list the same tokens with the same probabilities."""
    rows = [(a["id"], b["id"], a["p"] - b["p"]) for a, b in zip(one["rows"], other["rows"], strict=False)]
    return len(one["rows"]) == len(other["rows"]) and all(a == b and abs(p) < TINY for a, b, p in rows)


def stage_title(stage: dict) -> Html:
    """The head of a column."""
    removed = f"removed {percent(stage['removed'])}" if stage["removed"] else ""
    look = {"class": "stage-title", "title": stage["title"]}
    return h("div", look, h("b", "", stage["title"]), h("span", "removed", removed))


def stage_cells(row: dict, stages: list[dict], largest: float) -> list[Html]:
    """One token's cells: its bar in each stage, a dotted outline with ✕ where it was removed, and none after
    that.
    """
    look, cells, before, gone = "stage-cell" + " here" * row["here"], [], TINY * largest, False
    for stage in stages:
        p = next((other["p"] for other in stage["rows"] if other["id"] == row["id"]), None)
        if p is not None:
            before = p
            cells.append(h("span", look, track("p", p / largest), h("span", "number", percent(p))))
        elif gone:
            cells.append(h("span", look))
        elif stage["view"] != "unwanted" and whole(stage):
            gone = True
            named = {"class": look, "title": f"removed by {stage['title']}"}
            cells.append(h("span", named, bar("gone", before / largest), h("span", "cross", "✕")))
        else:
            cells.append(h("span", {"class": look, "title": "not among the recorded tokens"}, "·"))
    return cells


def whole(stage: dict) -> bool:
    """Whether all tokens of a stage are listed."""
    return stage["more"] == 0 or stage["rest"] < 1e-6


def drawn(draw: dict, stage: dict) -> Html:
    """One random number on the cumulative probabilities, with tokens in vocabulary order."""
    low, chosen, pieces = 0.0, next((row for row in stage["rows"] if row["here"]), None), []
    if stage["more"] == 0 and stage["rest"] < 1e-6:
        for row in sorted(stage["rows"], key=lambda row: row["id"]):
            pieces.append(piece(low, low + row["p"], row))
            low += row["p"]
    elif draw["low"] is not None and chosen:
        pieces.append(piece(draw["low"], draw["high"], chosen))
    name, u = chosen["text"] if chosen else "", digits(draw["u"])
    tick = h("span", {"class": "draw-tick", "style": f"left: {of_100(draw['u'])}"})
    between = f" ({digits(draw['low'])} to {digits(draw['high'])})" if draw["low"] is not None else ""
    return h(
        "div",
        {"class": "draw", "role": "img", "aria-label": f"u = {u} falls on {name}"},
        h("p", "rest", f"the draw: u = {u} falls on ", token(name), between),
        h("div", "draw-box", *pieces, tick),
        h("p", "rest", ORDER),
    )


def piece(low: float, high: float, row: dict) -> Html:
    """One token's interval of the cumulative probabilities."""
    look = {"class": "draw-piece" + " here" * row["here"], "title": f"{row['text']} {percent(high - low)}"}
    look["style"] = f"left: {of_100(low)}; width: {of_100(high - low)}"
    return h("span", look, row["text"])
