"""The tab Experiments: what the shipped models answered to repeatable questions, with tables and figures.

Knows no experiment by name: what is stored is shown.
"""

import asyncio
import base64
import html
import json

import gradio as gr

from explorer import experiments
from explorer.page.save_and_open import shown
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page_requests import StoredCall
from explorer.runs.validation import said


def build(tab: gr.Tab, look: gr.HTML) -> None:
    """Declares what is in the tab. `look`: the component whose value is the page's theme."""
    titles = [(found["title"], found["name"]) for found in experiments.stored()]
    chosen = gr.Dropdown(titles, value=None, label="Experiment", info="Type to search")
    # Nothing is drawn before it is looked at.
    tab.select(None, chosen, chosen, js=f"(name) => name || {json.dumps(titles[0][1])}")

    @gr.render([chosen, look], triggers=[chosen.change, look.change])
    def show(name: str | None, look: str) -> None:
        if name is None:
            return
        found = experiments.find_stored(name)
        gr.Markdown(heading(found))
        figures(found, look_of(look))
        for one in found.get("pictures", []):
            if one["kind"] == "passages":
                gr.HTML(passages(one))
        if found.get("calls"):
            calls(found)
        gr.Dataframe(
            cells(found),
            headers=found["columns"],
            datatype=kinds(found),
            label=f"Table: {found['title']}",
            interactive=False,
            wrap=True,
            elem_classes="experiment-table",
        )
        with gr.Row():
            gr.Markdown(measured(found))
            gr.DownloadButton(
                "Download as JSON", experiments.FOLDER / f"{name}.json", scale=0, min_width=180, size="sm"
            )


def figures(found: dict, look: str) -> None:
    """The figures of an answer, two beside each other where there is room, each with a caption in words."""
    from visualizers.figures import experiments as drawn  # only when one is looked at: plotly takes its time

    with gr.Row():
        for figure in drawn.figures(found, look):
            captioned(figure, wide=figure.layout.width is not None or len(figure.data) > 40)


def passages(picture: dict) -> str:
    """Texts side by side, below each other on a phone, a row for each beginning, as HTML."""
    cells = []
    for begin, texts in zip(picture["begin"], picture["texts"], strict=True):
        cells.append(f'<p class="begin">{html.escape(begin)}</p>')
        for column, pieces in zip(picture["columns"], texts, strict=True):
            words = "".join(marked(text, marks) for text, marks in pieces)
            cells.append(f"<div><h4>{html.escape(column)}</h4><p>{words}</p></div>")
    return f"<h3>{html.escape(picture['title'])}</h3><p>{html.escape(picture['says'])}</p>" + (
        f'<div class="passages">{"".join(cells)}</div>'
    )


def marked(text: str, marks: str) -> str:
    """A piece of a passage as HTML; `marks`: classes of what it is, none for plain text."""
    return f'<mark class="{marks}">{html.escape(text)}</mark>' if marks else html.escape(text)


def calls(found: dict) -> None:
    """A button for each decoding behind a message: it opens in a lane."""
    with gr.Row():
        for number in range(1, len(found["calls"]) + 1):
            opened = json.dumps([found["name"], number, found["title"]])
            button = gr.Button(f"Open call {number} in a lane", scale=0, min_width=200, size="sm")
            button.click(None, js=f"() => ExplorerPage.openCall(...{opened})")


# ---- words -------------------------------------------------------------------------------------------------


def heading(found: dict) -> str:
    """Question and answer of an experiment, as Markdown."""
    answers = "\n".join(f"- {escaped(sentence)}" for sentence in found["says"])
    return f"## {escaped(found['title'])}\n{escaped(found['asks'])}\n\n{answers}"


def measured(found: dict) -> str:
    """Which models were asked, and the command that asks again, as Markdown."""
    models = ", ".join(f"{role} {model}" for role, model in found["models"].items())
    corpus = " --corpus FOLDER" if found.get("corpus") else ""
    again = f"`python -m explorer experiment {found['name']}{corpus}`"
    return f"Asked of {escaped(models)}. Again: {again}"


def kinds(found: dict) -> list[str]:
    """What a column holds: numbers, which are sorted as such, or words."""
    columns = zip(*found["rows"], strict=True)
    return ["str" if any(isinstance(cell, str) for cell in column) else "number" for column in columns]


def cells(found: dict) -> list[list]:
    """The rows of the table, numbers with three places."""
    return [[round(cell, 3) if isinstance(cell, float) else cell for cell in row] for row in found["rows"]]


def functions(runs, loader) -> list:
    """What the page can ask for: the decoding behind a message of a stored answer."""

    def opened(request: StoredCall) -> dict:
        calls = {found["name"]: found.get("calls", []) for found in experiments.stored()}
        calls = calls.get(request.name, [])
        if not 0 < request.number <= len(calls):
            raise ValueError("There is no such call; choose one of a stored experiment.")
        return shown(runs, base64.b64decode(calls[request.number - 1]), request.session)

    async def explorer_call(request: StoredCall) -> str:
        """`{name, number}` gives the call as a run: see `save_and_open.shown`."""
        return await said(asyncio.to_thread(opened, request))

    return [explorer_call]
