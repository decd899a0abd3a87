"""Microscope: why drafted tokens are rejected over many prompts, the report of `explorer acceptance`.

A report is measured in small slices, on the worker thread that decodes for everybody, and ends when its page
closes.
"""

import asyncio
import json
import shlex
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import gradio as gr

from decoders.models.catalog import DRAFT, shipped_facts
from decoders.refusal import Refusal
from decoders.registry import strategies
from explorer.acceptance.prompts import prompts_of
from explorer.export.run_file import container
from explorer.page.save_and_open import show_run
from explorer.page.tabs import FETCH, UNTRACKED
from explorer.page.tabs.captioned import Captioned, captioned, escaped, look_of
from explorer.page.tabs.on_screen import screen
from explorer.page.tabs.traces import OPENED, Upload, write_served
from explorer.page_requests import Session
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.schema import Asked, parsed, read

if TYPE_CHECKING:
    from visualizers.analysis.acceptance_report import Measured

MANY, DRAFT_SIZE = 40, 2_000_000  # maximum prompts of a report here; maximum parameters of an offered draft
SLICE_SECONDS, AT_ONCE = 0.2, 2  # between two progress updates; simultaneous reports of all visitors
NONE = "none"
ABOUT = (
    "The report of `python -m explorer acceptance`, made here: the run's target (before a run, the app's) "
    "continues each prompt with each drafter, and every round that ended early is counted by its cause."
)
ROWS = (("why_rounds_ended", "by_position"), ("by_prompt", "by_entropy"), ("by_depth", "both_sides"))
EXAMPLES = """Once upon a time, there was a little girl named Lily. She loved to play in the garden.
In a quiet forest, a young fox named Finn was looking for food.
Tom is 7 years old, lives in Rome and has a cat. As json:"""
PROMPTS = ["Prompt", "Text", "Drafter", "Tokens per round", "Accepted", "Drafted", "Rejections", "Mostly"]
WIDTHS = ["180px", "120px", "150px", "110px", "260px", "340px"]  # of the columns of GROUPS
PROMPT_WIDTHS = ["80px", "320px", "180px", "110px", "100px", "90px", "110px", "170px"]
GROUPS = ["Drafter", "Kind", "Token or context", "Rejections", "Why", "Example"]
QUIET = {"api_visibility": "private"}


def small_models() -> list[str]:
    """The shipped models that are small enough to draft."""
    return [one["name"] for one in shipped_facts() if one["parameters"] <= DRAFT_SIZE]


def drafters() -> list[str]:
    """What can be chosen: models, then strategies that draft by themselves. Imports every strategy."""
    own = [name for name, s in strategies().items() if s.family == "speculative" and s.needs == ("target",)]
    return [*small_models(), *own]


class Form(NamedTuple):
    """What a visitor sets, and the buttons below."""

    texts: gr.Textbox
    upload: gr.UploadButton
    one: gr.Dropdown
    other: gr.Dropdown
    tokens: gr.Slider
    drafted: gr.Slider
    temperature: gr.Slider
    start: gr.Button
    stop: gr.Button


class Visit(Asked):
    """Whose run the opened lanes will be."""

    session: Session


class Results(NamedTuple):
    """Where a report is shown. `found`, `command`: the report and the command that makes it; `made`: what it
    is about.
    """

    body: gr.Column
    save: gr.DownloadButton
    places: dict[str, Captioned]
    metrics: gr.Dataframe
    groups: gr.Dataframe
    worst: gr.Dataframe
    found: gr.State
    command: gr.State
    made: gr.State

    @property
    def figures(self) -> list:
        """The parts of all figures."""
        return [part for place in self.places.values() for part in place.parts]


def build(
    tab: gr.Tab, on_screen: gr.HTML, look: gr.HTML, runs: Runs, loader: Loader, opened: gr.HTML
) -> None:
    """Declares the section. `opened`: what it gets, the page shows as a run that was opened."""
    gr.Markdown(f"## Acceptance over many prompts\n{ABOUT}", elem_id="many-prompts")
    form = form_of()
    says = gr.Markdown(elem_id="acceptance-says")
    results = results_of()
    offer_drafters(tab, form, loader)
    measure_on_press(form, says, results, on_screen, look, runs, loader)
    read_files(form, says, on_screen)
    save_on_press(says, results)
    open_on_click(says, results, on_screen, opened, runs)


def form_of() -> Form:
    """Declares the form."""
    names = small_models()
    first = DRAFT if DRAFT in names else names[0]
    with gr.Row():
        with gr.Column(min_width=420, scale=2):
            texts = gr.Textbox(
                EXAMPLES, lines=5, max_lines=12, label=f"Prompts: one per line, or JSON lines; up to {MANY}"
            )
            upload = gr.UploadButton(
                "Read them from a file (.txt, .jsonl)", file_types=[".txt", ".jsonl"], size="md"
            )
        with gr.Column(min_width=300):
            one = gr.Dropdown(names, value=first, label="Drafter")
            other = gr.Dropdown([NONE, *names], value=NONE, label="Second drafter")
            with gr.Row():
                tokens = gr.Slider(8, 96, 32, step=8, label="New tokens", min_width=140)
                drafted = gr.Slider(0, 16, 4, step=1, label="Drafted (0: own shape)", min_width=140)
                temperature = gr.Slider(0, 2, 0, step=0.1, label="Temperature of the report", min_width=140)
            with gr.Row():
                start = gr.Button("Measure acceptance", variant="primary", size="md", min_width=160)
                stop = gr.Button("Stop measuring", size="md", min_width=140, visible=False)
    return Form(texts, upload, one, other, tokens, drafted, temperature, start, stop)


def results_of() -> Results:
    """Declares what a report is shown in; hidden until there is one."""
    found, command, made = gr.State(None), gr.State(None), gr.State(None)
    with gr.Column(visible=False) as body:
        with gr.Row():
            save = gr.DownloadButton("Save report (HTML)", size="md", scale=0, min_width=180)
        places: dict[str, Captioned] = {}
        for row in ROWS:
            with gr.Row():
                places |= {name: captioned() for name in row}
        metrics = gr.Dataframe(label="vLLM's metrics, by drafter", interactive=False, wrap=True)
        groups = gr.Dataframe(
            headers=GROUPS,
            label="Rejected tokens and the text before them",
            interactive=False,
            wrap=True,
            column_widths=WIDTHS,
        )
        worst = gr.Dataframe(
            headers=PROMPTS,
            label="Prompts, worst first: a click opens the lanes of a row",
            interactive=False,
            wrap=True,
            column_widths=PROMPT_WIDTHS,
        )
    return Results(body, save, places, metrics, groups, worst, found, command, made)


def offer_drafters(tab: gr.Tab, form: Form, loader: Loader) -> None:
    """Offers the strategies that draft by themselves, once the tab is opened and the models are there."""

    async def offered() -> dict:
        await asyncio.to_thread(loader.done.wait)  # importing the strategies twice at once gains nothing
        names = await asyncio.to_thread(drafters)
        for choice, known in ((form.one, names), (form.other, [NONE, *names])):
            choice.choices = [(name, name) for name in known]  # what events of all visitors may be sent
        return {choice: gr.Dropdown(choice.choices) for choice in (form.one, form.other)}

    tab.select(offered, None, [form.one, form.other], **UNTRACKED, **QUIET)


def measure_on_press(
    form: Form,
    says: gr.Markdown,
    results: Results,
    on_screen: gr.HTML,
    look: gr.HTML,
    runs: Runs,
    loader: Loader,
) -> None:
    """Measures a report slice by slice when the button is pressed, and shows it."""

    def buttons(measuring: bool = False) -> dict:
        return {form.start: gr.Button(visible=not measuring), form.stop: gr.Button(visible=measuring)}

    def drawn(report: dict | None, theme: str) -> dict:
        if report is None:
            return {part: gr.skip() for part in results.figures}
        return {
            part: update
            for name, place in results.places.items()
            for part, update in place.updates(figure(report, name, look_of(theme))).items()
        }

    async def measure(
        value: str,
        theme: str,
        text: str,
        one: str,
        other: str,
        tokens: float,
        drafted: float,
        temperature: float,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 - how Gradio hands one in
    ) -> AsyncIterator[dict]:
        pieces = None
        try:
            yield {says: "Loading the drafters …"} | buttons(measuring=True)
            how = settings_of(tokens, drafted, temperature)
            chosen = [name for name in dict.fromkeys((one, other)) if name not in (NONE, None)]
            made: list[Measured] = []
            asked = (value, text, chosen, how, made)
            pieces, parts, target = await asyncio.to_thread(begin, runs, loader, *asked)
            done, report = 0, None
            while report is None:
                yield {says: f"{done} of {parts} texts are decoded."}
                progress((done, parts), desc="Decoding", unit="texts")
                last = await asyncio.wrap_future(runs.on_worker(lambda: advance(pieces)))
                done, report = (done, last) if isinstance(last, dict) else (last, None)
            shown = await asyncio.to_thread(drawn, report, theme)
            command = command_line(target, chosen, how)
            texts = {says: sentences(report), results.found: report, results.command: command}
            texts |= {results.made: made}
            yield (
                texts | tables(report, results) | shown | {results.body: gr.Column(visible=True)} | buttons()
            )
        except Refusal as error:
            yield {says: escaped(str(error))} | buttons()
        finally:
            if pieces is not None:  # frees the KV slots of an unfinished lane, on the thread that owns them
                runs.on_worker(pieces.close)

    shown = [results.body, results.found, results.command, results.made]
    shown += [results.metrics, results.groups, results.worst]
    measuring = form.start.click(
        measure,
        [on_screen, look, form.texts, form.one, form.other, form.tokens, form.drafted, form.temperature],
        [says, *shown, form.start, form.stop, *results.figures],
        show_progress_on=says,
        concurrency_limit=AT_ONCE,
        **QUIET,
    )
    form.stop.click(
        lambda: buttons() | {says: "Stopped."},
        None,
        [form.start, form.stop, says],
        cancels=[measuring],
        **QUIET,
    )
    look.change(drawn, [results.found, look], results.figures, **UNTRACKED, **QUIET)


def tables(report: dict, results: Results) -> dict:
    """The tables of a report."""
    return {
        results.metrics: metric_table(report),
        results.groups: group_rows(report),
        results.worst: prompt_rows(report),
    }


def read_files(form: Form, says: gr.Markdown, on_screen: gr.HTML) -> None:
    """Fills the field with the prompts of a file that a visitor opens."""

    async def uploaded(_: None, upload: str) -> tuple[Any, str]:
        def text() -> str:
            file = read(Upload, parsed(upload.encode(errors="replace"))).file
            return file_text(file.name, file.take())

        try:
            return await asyncio.to_thread(text), ""
        except Refusal as error:
            return gr.skip(), escaped(str(error))

    form.upload.upload(
        uploaded,
        [form.upload, on_screen],
        [form.texts, says],
        js="(file) => [null, ExplorerPage.app.traces.visit(file)]",
        show_progress_on=says,
        **QUIET,
    )


def save_on_press(says: gr.Markdown, results: Results) -> None:
    """Makes the file of a report when its button is pressed."""
    save = results.save

    async def saved(report: dict | None, command: str) -> str | None:
        from explorer.acceptance.report_page import report_page

        if report is None:
            return None
        page = await asyncio.to_thread(report_page, report, command)
        return write_served(save, "acceptance.html", page.encode())

    save.click(saved, [results.found, results.command], save, show_progress_on=says, **QUIET).success(
        None, save, save, js=FETCH
    )


def open_on_click(
    says: gr.Markdown, results: Results, on_screen: gr.HTML, opened: gr.HTML, runs: Runs
) -> None:
    """Opens the lanes of a prompt when its row is clicked: what was measured, not decoded again."""

    async def open_prompt(visit: str, made: list | None, picked: gr.SelectData) -> tuple[str, str]:
        def shown() -> dict:
            session = read(Visit, parsed(visit.encode(errors="replace"))).session
            number = int(picked.row_value[0])
            lanes = [one.traces[number - 1] for one in made or ()]
            if not lanes:
                raise Refusal("The report is gone; measure it again.")
            run = show_run(runs, container(lanes)["setup"], lanes, session)
            return run | {"file": f"prompt {number} of the report", "record": number}

        try:
            return json.dumps(await asyncio.to_thread(shown)), ""
        except Refusal as error:
            return json.dumps({"error": str(error)}), escaped(str(error))

    picked = results.worst.select(
        open_prompt,
        [on_screen, results.made],
        [opened, says],
        js="(_, made) => [JSON.stringify({ session: ExplorerPage.app.session }), made]",
        show_progress_on=says,
        **QUIET,
    )
    picked.success(None, opened, None, js=OPENED)


# ---- measuring ---------------------------------------------------------------------------------------------


def settings_of(tokens: float | None, drafted: float | None, temperature: float | None) -> Any:
    """The settings with which every prompt is decoded. Refusal with one sentence if out of range."""
    from explorer.acceptance.measuring import Settings

    if tokens is None or drafted is None or temperature is None:
        raise Refusal("Enter the number of new tokens, the number of drafted tokens, and a temperature.")
    if not (1 <= tokens <= 96 and 0 <= drafted <= 16 and 0 <= temperature <= 2):
        raise Refusal("At most 96 tokens per prompt, 16 drafted per round, and a temperature of 2.")
    return Settings(int(tokens), int(drafted) or None, float(temperature))


def begin(
    runs: Runs,
    loader: Loader,
    value: str,
    text: str | None,
    names: list[str],
    how: Any,
    made: "list[Measured]",
) -> tuple[Iterator, int, str]:
    """Prepares the requested report: returns an iterator that measures it piece by piece, the number of texts
    that it decodes, and its target's name; `made` gets what it measures. Raises Refusal with one sentence if
    it is impossible.
    """
    from explorer.acceptance.drafters import drafter
    from explorer.acceptance.measuring import in_pieces, parts_of

    prompts = prompts_of(text or "", "The field", most=MANY)
    if not names:
        raise Refusal("Choose a drafter.")
    target = target_of(runs, loader, value)

    def known(name: str) -> Any:
        return drafter(name, target, target.model.device.type)

    chosen = [runs.on_worker(lambda name=name: known(name)).result() for name in names]
    return in_pieces(target, chosen, prompts, how, made), parts_of(chosen, prompts), target.name


def target_of(runs: Runs, loader: Loader, value: str) -> Any:
    """The target of the run on screen, else the app's own."""
    try:
        seen = screen(runs, value)
    except Refusal:  # the run is gone
        seen = None
    return (loader.find(seen.run.models) if seen and seen.run.models else loader).wait()["target"]


def advance(pieces: Iterator) -> Any:
    """Measures for one slice of time. Returns how much is done so far, or the finished report."""
    until = time.perf_counter() + SLICE_SECONDS
    last = next(pieces)
    while time.perf_counter() < until and isinstance(last, int | tuple):
        last = next(pieces)
    return last


def file_text(name: str, data: bytes) -> str:
    """A file of prompts as text for the field. Raises Refusal with one sentence."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(f"{name} is not UTF-8 text; save it as UTF-8.") from error
    if len(text) > 20_000:
        raise Refusal(f"{name} has {len(text):,} characters; the page takes 20,000, the command line more.")
    prompts_of(text, name, most=MANY)
    return text


def command_line(target: str, names: list[str], how: Any) -> str:
    """The command that makes the same report."""
    drafts = " ".join(f"--draft {shlex.quote(name)}" for name in names)
    count = how.num_assistant_tokens
    chain = f" --num-assistant-tokens {count}" if count is not None else ""
    drawn = f" --temperature {how.temperature:g}" if how.temperature else ""
    return (
        f"python -m explorer acceptance --target {shlex.quote(target)} {drafts} --prompts FILE "
        f"--max-new-tokens {how.max_new_tokens}{chain}{drawn}"
    )


# ---- results -----------------------------------------------------------------------------------------------


def figure(report: dict, name: str, look: str) -> Any:
    """A Plotly figure of a report; an empty one with an explanation if the drafters cannot be compared."""
    from visualizers.figures import acceptance as charts  # on demand: plotly is slow to import
    from visualizers.figures.charts import nothing

    if name == "both_sides" and report["sides"] is None:
        return nothing(
            "The same positions, both drafters", "Choose two drafters that guess along a text.", look
        )
    return vars(charts)[name](report, look)


def sentences(report: dict) -> str:
    """The main figures of each drafter, and a comparison at the same positions, as Markdown."""
    from explorer.acceptance.words import compared

    lines = []
    for draft in report["drafts"]:
        named = {one["name"]: one["value"] for one in draft["metrics"]}
        rejections = sum(draft["causes"].values())
        lines.append(
            f"**{escaped(draft['name'])}**: {draft['shape']}; "
            f"{named['mean_acceptance_length']:.2f} tokens per round{uncut(named)}, "
            f"{named['draft_acceptance_rate']:.0%} of its drafted tokens accepted, {rejections} rejections."
            if named
            else f"**{escaped(draft['name'])}** drafted nothing."
        )
    if report["sides"]:
        lines.append(escaped(compared(report["sides"])))
    return "\n".join(f"- {line}" for line in lines)


def uncut(named: dict) -> str:
    """The mean without the rounds that the end of a text cut, if there are both kinds."""
    mean = named.get("mean_acceptance_length_uncut")
    return (
        f" ({mean:.2f} without the rounds that the end of the text cut short)"
        if named["cut_rounds"] and mean
        else ""
    )


def metric_table(report: dict) -> dict:
    """The table of vLLM's metrics: one row per metric, one column per drafter."""
    from explorer.acceptance.report_page import by_metric, number

    drafts = [draft for draft in report["drafts"] if draft["metrics"]]
    rows = [
        [one["name"], *(number(value) for value in values), one["words"], one["formula"]]
        for one, values in by_metric(drafts)
    ]
    headers = ["Metric", *(draft["name"] for draft in drafts), "What it counts", "Formula"]
    return {"headers": headers, "data": rows}


def group_rows(report: dict) -> list[list]:
    """The tokens rejected most often, and the words before them, by drafter."""
    return [
        [draft["name"], kind, one["name"], one["rejections"], cause_words(one["causes"]), one["example"]]
        for draft in report["drafts"]
        for kind, groups in (("rejected token", draft["tokens"]), ("after", draft["contexts"]))
        for one in groups
    ]


def cause_words(causes: dict[str, int]) -> str:
    """The causes with their counts: `near tie 3, bad luck 1`."""
    return ", ".join(f"{name} {count}" for name, count in causes.items())


def prompt_rows(report: dict) -> list[list]:
    """One row per prompt and drafter; prompts at which the first drafter gained least come first."""
    from explorer.acceptance.report_page import shortened
    from visualizers.analysis.acceptance_report import worst_first

    rows = []
    for at in worst_first(report):
        for draft in report["drafts"]:
            one = draft["prompts"][at]
            gained = one["mean_acceptance_length"]
            counts = [one[name] for name in ("num_accepted_tokens", "num_draft_tokens", "rejections")]
            text = shortened(report["prompts"][at]["prompt"])
            rows.append([at + 1, text, draft["name"], None if gained is None else round(gained, 3)])
            rows[-1] += [*counts, one["cause"] or "—"]
    return rows
