"""The stored experiments as pages: finding, figures, sentences and table."""

import base64
from collections.abc import Sequence

from explorer import experiments
from explorer.experiments import basis
from explorer.export.foreign_traces import declarations, viewed
from explorer.export.run_file import unpack
from explorer.markup import Html, h
from explorer.page.tabs.experiment_cards import grouped, is_numbers, picture, shares
from explorer.page.tabs.experiments import SHADES, passages, shade
from explorer.site.figures import carried_figures, figures_html
from explorer.site.pages import Site, content, heading
from explorer.site.replays import replay_page

SAYS = "Repeatable questions, and what the models that come with the app answered."


def build(site: Site, names: Sequence[str] | None) -> set[str]:
    """Writes the pages of all stored answers, or of these, and their list; returns their names."""
    answers = [answer for answer in experiments.stored() if names is None or answer["name"] in names]
    for answer in answers:
        experiment_page(site, answer)
    made: list[Html] = []
    for title, members in grouped(answers).items():
        made += [h("h2", "", title), h("ul", "", *map(card, members))] if members else []
    body = content(
        heading("Experiments", h("p", "site-says", SAYS)), h("div", {"id": "experiment-catalogue"}, *made)
    )
    site.page("experiments.html", "Experiments", SAYS, body, kind="page")
    return {answer["name"] for answer in answers}


def card(answer: dict) -> Html:
    """An experiment in the list: a small picture, its title and its finding, as a link."""
    words = h("span", "", h("b", "", answer["title"]), " ", answer["finding"])
    return h("li", "", h("a", {"href": f"experiments/{answer['name']}.html"}, Html(picture(answer)), words))


def experiment_page(site: Site, answer: dict) -> None:
    """Writes the page of an answer."""
    from visualizers.figures.experiments import figures  # on demand: plotly is slow to import

    name, drawn = answer["name"], {look: figures(answer, look) for look in ("light", "dark")}
    texts = [Html(passages(one)) for one in answer.get("pictures", []) if one["kind"] == "passages"]
    body = content(
        heading(
            answer["title"],
            h("p", "site-says", answer["finding"]),
            h("p", "", basis.says(answer["stands"])),
            h("p", "", answer["asks"]),
        ),
        figures_html(drawn["light"]),
        *texts,
        h("ul", "", *(h("li", "", sentence) for sentence in answer["says"])),
        *filter(None, [calls(site, answer)]),
        table(answer),
        h(
            "p",
            "caption",
            f"{SHADES} ",
            *measured(answer),
            " ",
            h("a", {"href": f"{name}.json", "download": True}, "Download as JSON"),
        ),
        h("p", "site-next", h("a", {"href": "../experiments.html"}, "All experiments")),
        wide=True,
    )
    site.write(f"experiments/{name}.json", (experiments.FOLDER / f"{name}.json").read_bytes())
    site.page(
        f"experiments/{name}.html",
        answer["title"],
        answer["finding"],
        body,
        scripts=("figures.js",) if drawn["light"] else (),
        carried=carried_figures(drawn),
        kind="experiment",
        words=" ".join([name.replace("-", " "), answer["asks"], *answer["says"]]),
    )


def calls(site: Site, answer: dict) -> Html | None:
    """Writes a page for each decoding behind a message, and returns links to them; None if there is none."""
    links = []
    for number, data in enumerate(answer.get("calls", []), 1):
        title, stem = f"Call {number} of “{answer['title']}”", f"{answer['name']}-call-{number}"
        setup, traces = unpack(base64.b64decode(data))
        back = h("a", {"href": f"{answer['name']}.html"}, "The whole experiment")
        intro = h(
            "div", {"class": "explorer site-intro", "id": "main"}, heading(title, h("p", "caption", back))
        )
        setup = viewed(setup, declarations(traces), traces)
        replay_page(site, f"experiments/{stem}.html", title, answer["finding"], traces, setup, intro)
        links.append(h("a", {"href": f"{stem}.html"}, f"Replay call {number}"))
    return h("p", "site-next", *links) if links else None


def measured(answer: dict) -> list[Html | str]:
    """Which models were asked, and the command that repeats the experiment."""
    models = ", ".join(f"{role} {model}" for role, model in answer["models"].items())
    folders = "".join(f" --{what} FOLDER" for what in ("corpus", "schemas") if answer.get(what))
    return [
        f"Models: {models}. To repeat it: ",
        h("code", "", f"decoding-explorer experiment {answer['name']}{folders}"),
    ]


def table(answer: dict) -> Html:
    """The table of an answer; the darker a cell, the larger its number in its column."""
    columns = list(zip(*answer["rows"], strict=True))
    shaded = [
        shares(column)
        if at and is_numbers(column) and len(set(column) - {None}) > 1
        else [None] * len(column)
        for at, column in enumerate(columns)
    ]
    rows = []
    for row, looks in zip(answer["rows"], zip(*shaded, strict=True), strict=True):
        first, *cells = zip(row, looks, strict=True)
        rows.append(
            h(
                "tr",
                "",
                h("th", {"scope": "row"}, experiments.number(first[0])),
                *(
                    h(
                        "td",
                        {
                            "style": None if look is None else shade(look),
                            "class": None if isinstance(cell, str) else "number",
                        },
                        experiments.number(cell),
                    )
                    for cell, look in cells
                ),
            )
        )
    head = h("tr", "", *(h("th", {"scope": "col"}, name) for name in answer["columns"]))
    named = {
        "class": "site-table",
        "tabindex": 0,
        "role": "region",
        "aria-label": f"Table: {answer['title']}",
    }
    return h("div", named, h("table", "", h("thead", "", head), h("tbody", "", *rows)))
