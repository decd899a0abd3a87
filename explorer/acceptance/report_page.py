"""An acceptance report as a page: tables, figures and every text with its rejections."""

from functools import partial
from typing import Any

from explorer.acceptance.words import compared
from explorer.export.report_page import figure_place, header, report_html
from explorer.markup import Html, h
from visualizers.analysis.acceptance_report import worst_first
from visualizers.analysis.rejection_causes import CAUSES
from visualizers.analysis.speculation_report import NAMES

FIGURES = ("why_rounds_ended", "by_position", "by_prompt", "by_entropy", "by_depth", "both_sides")
BEGIN = 60  # characters of a prompt that the table shows


def report_page(report: dict, command: str) -> str:
    """The whole page. `command`: the command line that reproduces it."""
    from visualizers.figures import acceptance as charts  # with Plotly, which only a page needs

    title = f"Acceptance: {', '.join(draft['name'] for draft in report['drafts'])} for {report['target']}"
    figures = {name: partial(vars(charts)[name], report) for name in FIGURES}
    return report_html(title, body(report, title, command), figures)


def body(report: dict, title: str, command: str) -> Html:
    """The content of the page."""
    figures = list(map(figure_place, FIGURES))
    if report["sides"] is None:
        figures = figures[:-1]
    return h(
        "main",
        "",
        h("h1", "", title),
        h("p", "soft", about(report)),
        h("pre", "", command),
        metrics_table(report),
        h("div", "figures", *figures),
        *sides_of(report),
        h("h2", "", "Why rounds ended"),
        h("dl", "", *definitions(report)),
        *(part for at in range(len(report["drafts"])) for part in groups_of(report, at)),
        h("h2", "", "Prompts, worst first"),
        prompts_table(report),
        h("h2", "", "Texts"),
        h("p", "soft", LEGEND),
        *(text_of(report, at) for at in worst_first(report)),
    )


LEGEND = (
    "Every text as its target wrote it, once per drafter. Blue: drafted and accepted; ◆: written by the "
    "target after a rejection, preceded by the rejected guess, struck through; ★: bonus token of a fully "
    "accepted draft; plain: nothing was drafted there. Point at a token for its numbers."
)


def about(report: dict) -> str:
    """What was measured and how, in a few sentences."""
    texts = report["prompts"]
    tokens = sum(len(text["tokens"]) for text in texts)
    how = f"drawn at temperature {report['temperature']:g}" if report["temperature"] else "greedily"
    return (
        f"{len(texts)} prompts, {tokens:,} new tokens of {report['target']}, {how}. A round ends at the "
        "first position where no drafted token is accepted; that is its rejection. Every drafter decoded "
        "every prompt."
        + (
            ""
            if report["temperature"]
            else " All texts are the target's own, so two drafters are compared at the same positions."
        )
    )


def metrics_table(report: dict) -> Html:
    """vLLM's metrics: one row per metric, one column per drafter."""
    drafts = [draft for draft in report["drafts"] if draft["metrics"]]
    if not drafts:
        return h("p", "", "Nothing was drafted.")
    head = header(["vLLM's metric", *(draft["name"] for draft in drafts), "formula"])
    shapes = [h("td", "", draft["shape"]) for draft in drafts]
    rows = [h("tr", "", h("th", "", "shape of the draft"), *shapes, h("td", "soft", "measured"))]
    for metric, values in by_metric(drafts):
        cells = [h("td", "number", number(value)) for value in values]
        words = f"{metric['words']}: {metric['formula']}"
        rows.append(h("tr", "", h("th", "", h("code", "", metric["name"])), *cells, h("td", "soft", words)))
    return h("div", "wide", h("table", "", head, *rows))


def by_metric(drafts: list[dict]) -> list[tuple[dict, list]]:
    """Each metric that one of the drafts has, and its values for all of them; None where one lacks it."""
    found = [{one["name"]: one for one in draft["metrics"]} for draft in drafts]
    known = {name: own[name] for own in found for name in own}
    return [(known[n], [own.get(n, {}).get("value") for own in found]) for n in NAMES if n in known]


def number(value: Any) -> str:
    """Formats a metric; lists with commas."""
    if isinstance(value, list):
        return ", ".join(map(number, value))
    if value is None:
        return "—"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def sides_of(report: dict) -> list[Html]:
    """Positions at which one of two drafters is right and the other wrong, with their comparison."""
    sides = report["sides"]
    if not sides or not sides["places"]:
        return []
    a, b = sides["names"]
    parts = [h("h2", "", f"{a} and {b} at the same positions"), h("p", "", compared(sides))]
    for right, wrong, name in ((a, b, "examples_a"), (b, a, "examples_b")):
        rows = [
            h(
                "tr",
                "",
                h("td", "context", one["context"], h("b", "", one["token"])),
                h("td", "", h("s", "rejected", one["guess"])),
                h("td", "number", f"{one['q']:.2f}"),
                h("td", "", link(one["prompt"], one["place"])),
            )
            for one in sides[name]
        ]
        head = header(["text and its token", f"{wrong} guesses", "q", "position"])
        if rows:
            parts.append(h("h3", "", f"{right} is right, {wrong} is most confident in another token"))
            parts.append(h("div", "wide", h("table", "", head, *rows)))
    return parts


def definitions(report: dict) -> list[Html]:
    """The causes of rejection that occur, with their definitions."""
    occurring = {name for draft in report["drafts"] for name in draft["causes"]}
    known = [name for name in CAUSES if name in occurring]
    return [h(tag, "", words) for name in known for tag, words in (("dt", name), ("dd", CAUSES[name]))]


def groups_of(report: dict, at: int) -> list[Html]:
    """The tokens rejected most often and the words before them, with links to some of these positions."""
    draft = report["drafts"][at]
    tables = []
    for words, groups in (("rejected token", draft["tokens"]), ("after", draft["contexts"])):
        head = header([words, "rejections", "why", "example", "positions"])
        rows = [
            h(
                "tr",
                "",
                h("td", "token", group["name"]),
                h("td", "number", str(group["rejections"])),
                h("td", "", ", ".join(f"{name} {n}" for name, n in group["causes"].items())),
                h("td", "context", group["example"]),
                h("td", "", *[Html(f"{link(prompt, place, at)} ") for prompt, place in group["places"]]),
            )
            for group in groups
        ]
        if rows:
            tables.append(h("div", "wide", h("table", "", head, *rows)))
    if not tables:
        return []
    return [h("h3", "", f"{draft['name']}: rejected tokens and the words before them"), *tables]


def link(prompt: int, place: int, draft: int = 0) -> Html:
    """A link to a position in a text."""
    return h("a", {"href": f"#p{prompt + 1}-d{draft + 1}-t{place + 1}"}, f"{prompt + 1}:{place + 1}")


def prompts_table(report: dict) -> Html:
    """One row per prompt; those with the fewest tokens per round of the first drafter come first."""
    names = [h("th", {"colspan": 4}, draft["name"]) for draft in report["drafts"]]
    columns = ("tokens per round", "accepted", "rejections", "mostly")
    head = [h("tr", "", h("th", {"colspan": 2}, ""), *names)]
    head.append(header(["prompt", "", *(words for _ in names for words in columns)]))
    rows = []
    for at in worst_first(report):
        text = report["prompts"][at]
        cells = [
            h("td", "", h("a", {"href": f"#p{at + 1}"}, str(at + 1))),
            h(
                "td",
                "context",
                f"[{text['category']}] " if text["category"] else "",
                shortened(text["prompt"]),
            ),
        ]
        for draft in report["drafts"]:
            one = draft["prompts"][at]
            cells += [
                h("td", "number", number(one["mean_acceptance_length"])),
                h("td", "number", f"{one['num_accepted_tokens']} of {one['num_draft_tokens']}"),
                h("td", "number", str(one["rejections"])),
                h("td", "", one["cause"] or "—"),
            ]
        rows.append(h("tr", "", *cells))
    return h("div", "wide", h("table", "", *head, *rows))


def shortened(text: str) -> str:
    """The beginning of a prompt on one line."""
    one = " ".join(text.split())
    return one if len(one) <= BEGIN else one[:BEGIN].rstrip() + " …"


def text_of(report: dict, at: int) -> Html:
    """One text with its marks, once per drafter."""
    text = report["prompts"][at]
    heading = h("summary", "", f"{at + 1}. {shortened(text['prompt'])}")
    # Following a link to something inside closed details opens them.
    parts: list[Html] = [h("p", {"class": "soft", "id": f"p{at + 1}"}, text["prompt"])]
    for number_, draft in enumerate(report["drafts"]):
        rejections = {one["place"]: one for one in draft["rejections"] if one["prompt"] == at}
        marks = draft["prompts"][at]["marks"]
        chips = [
            chip(f"p{at + 1}-d{number_ + 1}-t{place + 1}", text, place, mark, rejections.get(place))
            for place, mark in enumerate(marks[: len(text["tokens"])])
        ]
        parts.append(h("p", "text", h("b", "", draft["name"]), *chips))
    return h("details", "", heading, *parts)


GLYPHS = {"resampled": "◆", "bonus": "★"}


def chip(name: str, text: dict, place: int, mark: str, rejection: dict | None) -> Html:
    """A token of a text, preceded by the guess that was rejected there."""
    bits = f"{text['entropy'][place]:.2f} bits" if place < len(text["entropy"]) else ""
    says = ", ".join(filter(None, [f"token {place + 1}", mark or "not drafted", bits]))
    parts = []
    if rejection is not None:
        numbers = ", ".join(f"{k} {rejection[k]:.3f}" for k in ("p", "q") if rejection[k] is not None)
        guess = f"“{rejection['token']}” rejected ({numbers}), depth {rejection['depth']}"
        says += f"; {rejection['cause']}: {guess}"
        parts.append(h("s", "rejected", rejection["token"]))
    shown = text["tokens"][place] + GLYPHS.get(mark, "")
    return h("span", {"id": name, "class": f"chip {mark}".strip(), "title": says}, *parts, shown)
