"""The comparison of two engines as a page: what explains the differences, the picture, the text coloured by
verdict, and the largest differences.
"""

from functools import partial

from explorer.export.report_page import figure_place, header, report_html
from explorer.markup import Html, h
from explorer.twin.words import logprob, verdict_sentences
from visualizers.analysis.twin import VERDICTS, Place, Reading, Twin, largest_first

ROWS = 50  # of the table: the largest differences


def report_page(found: Twin, command: str) -> str:
    """The whole page. `command`: the command line that reproduces it."""
    from visualizers.figures import twin as charts  # with Plotly, which only a page needs

    return report_html(title_of(found), body(found, command), {"twin": partial(charts.scored_twice, found)})


def title_of(found: Twin) -> str:
    """The page's title."""
    return f"One text on two engines: {found.names[0]} and {found.names[1]}"


def body(found: Twin, command: str) -> Html:
    """The content of the page."""
    return h(
        "main",
        "",
        h("h1", "", title_of(found)),
        *(h("p", "", sentence) for sentence in verdict_sentences(found)),
        h("pre", "", command),
        figure_place("twin"),
        h("h2", "", "Text"),
        h("p", "soft", "Point at a token for its numbers. Underlined: the most likely token differs."),
        h("p", "text", h("span", "soft", found.before), *map(chip, found.places)),
        h("h2", "", "Verdicts"),
        h("dl", "", *definitions(found)),
        h("h2", "", "Largest differences"),
        h("div", "wide", differences(found)),
    )


def chip(place: Place) -> Html:
    """A token in the colour of its verdict."""
    name, when = VERDICTS[place.verdict]
    says = f"{place.position}: {logprob(place.a)} in A, {logprob(place.b)} in B; {name}: {when}"
    flips = " flips" if place.flips else ""
    return h("span", {"class": f"chip verdict-{place.verdict}{flips}", "title": says}, place.text)


def definitions(found: Twin) -> list[Html]:
    """The verdicts that occur, with their counts and definitions."""
    rows = []
    for name, count in found.counts.items():
        word, when = VERDICTS[name]
        rows += [h("dt", "", h("span", f"chip verdict-{name}", f"{word}, {count:,}")), h("dd", "", when)]
    return rows


def differences(found: Twin) -> Html:
    """The table of the largest differences."""
    words = ["token", "", "A", "B", "difference", "A's most likely", "B's most likely", "KL(A‖B)", "verdict"]
    rows = [
        h(
            "tr",
            "",
            h("td", "number", str(one.position)),
            h("td", "token", one.text),
            h("td", "number", logprob(one.a)),
            h("td", "number", logprob(one.b)),
            h("td", "number", f"{one.difference:+.3g}"),
            h("td", "token", best(one.a, found.texts)),
            h("td", "token", best(one.b, found.texts)),
            h("td", "number", "—" if one.kl is None else f"{one.kl:.2g}"),
            h("td", "", one.verdict),
        )
        for one in largest_first(found.places)[:ROWS]
    ]
    return h("table", "", header(words), *rows)


def best(reading: Reading, texts: dict[int, str]) -> str:
    """The most likely token and its log-probability."""
    if not reading.top:
        return "—"
    token, value = reading.top[0]
    return f"{texts[token]} {value:.4f}"
