"""The tab Experiments: the shipped models' answers to repeatable questions, with tables and figures.

It shows a catalogue of cards, or the experiment that the page's address names (`#experiment=NAME`).
"""

import asyncio
import base64
import html
import json
from typing import Any

import gradio as gr

from decoders.refusal import Refusal
from explorer import experiments
from explorer.experiments import basis
from explorer.page.save_and_open import open_file
from explorer.page.tabs import UNTRACKED, carried
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.experiment_cards import ALL, LINK, catalogue, is_numbers, shares
from explorer.page_requests import StoredCall
from explorer.runs.validation import as_json

ABOUT = (
    "Repeatable questions and the answers of the models that come with the app, the most surprising first."
)
SHADES = "Shades run from the lowest value of a column (pale) to the highest (dark)."
DARKEST = 32  # percent of the text's colour in a cell: keeps a contrast of 5 to 1 in both themes
# The page's address says which experiment is open.
FOLLOW = f"""const tell = () => {{
    const hash = location.hash, [, name] = hash.match(/^{LINK}([\\w-]{{1,60}})$/) || [];
    if (hash && hash !== "{ALL}" && !name) return;
    props.value = name || "";
    if (hash) ExplorerPage.app.showSection("experiments");
    if (name) scrollTo(0, 0);
}};
addEventListener("hashchange", tell); setTimeout(tell);"""
# The focused element is gone when an experiment opens.
FOCUS = "if (document.activeElement === document.body) element.querySelector('a').focus();"


def named() -> gr.HTML:
    """Declares the component whose value is the experiment that the page's address names, "" for none. Call
    it outside the tab, whose components exist only once the tab has been opened.
    """
    return carried(FOLLOW)


def build(tab: gr.Tab, opened: gr.HTML, look: gr.HTML) -> None:
    """Declares the contents of the tab. `opened`: see `named`; `look`: its value is the page's theme."""
    with gr.Column() as browse:
        gr.Markdown(ABOUT)
        words = gr.Textbox(
            label="Search experiments", placeholder="draft length, repetition, trees, feedback …", max_lines=1
        )
        cards = gr.HTML(elem_id="experiment-catalogue")

    def listed(words: str | None) -> str:
        return catalogue(experiments.stored(), words or "")

    # Nothing is drawn before the tab is opened.
    quiet = {**UNTRACKED, "api_visibility": "private"}
    gr.on([tab.select, words.change], listed, words, cards, trigger_mode="always_last", **quiet)
    opened.change(lambda name: gr.Column(visible=not name), opened, browse, **quiet)

    @gr.render([opened, look], triggers=[opened.change, look.change])
    def show(name: str, look: str) -> None:
        if not name:
            return
        gr.HTML(f'<a href="{ALL}">← All experiments</a>', js_on_load=FOCUS)
        answer = {one["name"]: one for one in experiments.stored()}.get(name)
        if answer is None:
            gr.Markdown(f"There is no experiment “{escaped(name)}”.")
            return
        gr.Markdown(heading(answer))
        figures(answer, look_of(look))
        for one in answer.get("pictures", []):
            if one["kind"] == "passages":
                gr.HTML(passages(one))
        gr.Markdown(sentences(answer))
        if answer.get("calls"):
            calls(answer)
        gr.Dataframe(
            shaded(answer),
            datatype=kinds(answer),
            label=f"Table: {answer['title']}",
            interactive=False,
            wrap=True,
            elem_classes="experiment-table",
        )
        with gr.Row():
            gr.Markdown(f"{SHADES} {measured(answer)}")
            gr.DownloadButton(
                "Download as JSON", experiments.FOLDER / f"{name}.json", scale=0, min_width=180, size="sm"
            )


def figures(answer: dict, look: str) -> None:
    """Shows the figures of an answer with captions, two side by side where there is room."""
    from visualizers.figures import experiments as drawn  # on demand: plotly is slow to import

    with gr.Row():
        for figure in drawn.figures(answer, look):
            captioned(figure, wide=figure.layout.width is not None or len(figure.data) > 40)


def passages(picture: dict) -> str:
    """Texts side by side (on a phone, one below the other) as HTML, with one row per prompt."""
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
    """A piece of a passage as HTML. `marks`: its CSS classes, empty for plain text."""
    return f'<mark class="{marks}">{html.escape(text)}</mark>' if marks else html.escape(text)


def calls(answer: dict) -> None:
    """Shows a button for each decoding behind a message; it opens the decoding in a lane."""
    with gr.Row():
        for number in range(1, len(answer["calls"]) + 1):
            opened = json.dumps([answer["name"], number, answer["title"]])
            button = gr.Button(f"Open call {number} in a lane", scale=0, min_width=200, size="sm")
            button.click(None, js=f"() => ExplorerPage.openCall(...{opened})")


# ---- words -------------------------------------------------------------------------------------------------


def heading(answer: dict) -> str:
    """Title, finding, what the finding stands on, and question of an experiment, as Markdown."""
    lines = [answer["asks"], basis.says(answer["stands"])]
    asked, stands = map(escaped, lines)
    return f"## {escaped(answer['title'])}\n\n**{escaped(answer['finding'])}**\n\n{stands}\n\n{asked}"


def sentences(answer: dict) -> str:
    """All conclusions of an experiment, as Markdown."""
    return "\n".join(f"- {escaped(sentence)}" for sentence in answer["says"])


def measured(answer: dict) -> str:
    """Which models were used, and the command that repeats the experiment, as Markdown."""
    models = ", ".join(f"{role} {model}" for role, model in answer["models"].items())
    folders = "".join(f" --{what} FOLDER" for what in ("corpus", "schemas") if answer.get(what))
    again = f"`python -m explorer experiment {answer['name']}{folders}`"
    return f"Models: {escaped(models)}. To repeat it: {again}"


# ---- the table ---------------------------------------------------------------------------------------------


def kinds(answer: dict) -> list[str]:
    """The datatype of each column: "number", so that it is sorted numerically, or "str"."""
    columns = zip(*answer["rows"], strict=True)
    return ["str" if any(isinstance(cell, str) for cell in column) else "number" for column in columns]


def shaded(answer: dict) -> Any:
    """The table as a pandas Styler: numbers have three digits, and larger numbers in a column are darker. The
    first column, which names the rows, and columns with a single value are not shaded.
    """
    import pandas  # on demand: slow to import

    frame = pandas.DataFrame(answer["rows"], columns=answer["columns"], dtype=object)
    styles = pandas.DataFrame("", frame.index, frame.columns)
    for name, column in list(zip(answer["columns"], zip(*answer["rows"], strict=True), strict=True))[1:]:
        if is_numbers(column) and len(set(column) - {None}) > 1:
            styles[name] = ["" if share is None else shade(share) for share in shares(column)]
    return frame.style.format(experiments.number).apply(lambda _: styles, axis=None)


def shade(share: float) -> str:
    """The style of a shaded cell, in the page's own colours, so that it follows the page's theme."""
    return f"background-color: color-mix(in srgb, var(--text) {DARKEST * share:.0f}%, var(--bg))"


def functions(runs, loader) -> list:
    """The server functions, see `layout.server_functions`: a decoding behind a message of a stored answer."""

    def opened(request: StoredCall) -> dict:
        calls = {answer["name"]: answer.get("calls", []) for answer in experiments.stored()}
        calls = calls.get(request.name, [])
        if not 0 < request.number <= len(calls):
            raise Refusal("There is no such call; choose one of a stored experiment.")
        return open_file(runs, base64.b64decode(calls[request.number - 1]), request.session)

    async def explorer_call(request: StoredCall) -> str:
        """`{name, number}` gives the call as a run: see `save_and_open.open_file`."""
        return await as_json(asyncio.to_thread(opened, request))

    return [explorer_call]
