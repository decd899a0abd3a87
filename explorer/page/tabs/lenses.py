"""The tab Lenses: what the layers of a lane's target compute for its text, up to the step on screen, or
before the token that the inspector shows.

Its controls are made from the declarations of the lenses (decoders/lenses/registry.py). A lens runs on the
worker that decodes for everybody; its latest frames are cached.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import gradio as gr

from decoders.lenses.frame import LensFrame
from decoders.lenses.registry import Lens, lenses, look
from decoders.refusal import Refusal
from decoders.strategy import Parameter
from decoders.trace.events import Commit, Step
from decoders.trace.scores import Measure, Rank, ScoreName
from decoders.trace.trace import Trace
from explorer.page.branch import check_models_of_trace, text_before
from explorer.page.tabs import UNTRACKED, carried, mark_at_work, unmark
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import READING, Lane, Screen, follows, screen
from explorer.page_requests import OfLane
from explorer.runs.model_pool import Loader
from explorer.runs.run_state import Run
from explorer.runs.scheduler import Runs
from explorer.runs.validation import MAX_LANES, as_json
from explorer.schema import Asked, Name, Whole, parsed, read

ABOUT = (
    "What happens inside the target while it reads the text of a lane, up to the step of the lane's slider. "
    "A lens chooses no token, and its forwards are not counted in any lane."
)
NONE = "Press Run in Decode: there is no lane yet."
NOTHING_BEFORE = "There is no text before this token; choose a later one."
SOURCE = "correct: the littel dog runned to the park. =>"
PLACES = 3  # maximum number of figures of a lens
KEPT = 6  # cached frames
KEEP = """ExplorerPage.lens = (asked) => {
    props.value = JSON.stringify(asked);
    ExplorerPage.app.showSection("lenses");
};"""


class OfToken(Asked):
    """The token for which the inspector asked: the value of `token()`, as JSON text."""

    run: Name
    lane: Whole
    node: Whole


@dataclass(frozen=True)
class Subject:
    """A text to look into, and a sentence that names it."""

    lane: Lane
    tokens: list[int]
    says: str


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `layout.server_functions`: the decision depths of a lane."""

    async def explorer_depths(request: OfLane) -> str:
        """`{run, lane}` gives `{depths}`: node -> [layers after which its token is settled, number of
        layers].
        """

        def found() -> dict:
            run = runs.find(request.run)
            record = run.lane(request.lane)
            record.depths = depths(runs, loader, run, record.trace)
            return {"depths": record.depths}

        return await as_json(asyncio.to_thread(found))

    return [explorer_depths]


def depths(runs: Runs, loader: Loader, run: Run, trace: Trace) -> dict[int, list[int]]:
    """The decision depth of each output token that is the target's own first choice: the layer from which on
    the logit lens always shows it. One lens forward over the whole text. Refusal with one sentence.
    """
    target = check_models_of_trace(trace, loader.find(run.models).wait())["target"]
    nodes = [n for step in list(trace.steps) for commit in step.of(Commit) for n in commit.nodes]
    tokens = [*trace.prompt, *(trace.index().token[n] for n in nodes)]
    frame = runs.on_worker(
        lambda: look("logit", target, tokens, {"positions": min(512, len(tokens))})
    ).result()
    settled = {e.node: int(e.total) for e in frame.of(Measure, name=ScoreName.DECISION_DEPTH)}
    says = {e.node: e.rank for e in frame.of(Rank, name=ScoreName.CHOSEN, level=frame.levels[-1])}
    first, layers = len(trace.prompt) - 1, len(frame.levels) - 1
    return {node: [settled[at], layers] for at, node in enumerate(nodes, first) if says.get(at) == 1}


def token() -> gr.HTML:
    """The component whose value is the token for which the inspector asked, "" for none. It is outside the
    tab, whose components do not exist before the tab is selected.
    """
    return carried(KEEP)


def build(on_screen: gr.HTML, look: gr.HTML, token: gr.HTML, runs: Runs, loader: Loader) -> None:
    """Declares the contents of the tab. `on_screen`: see on_screen.py; `look`: its value is the page's
    theme.
    """
    first, frames = next(iter(lenses())), Frames()
    with gr.Column(elem_classes=follows("lenses")):
        gr.Markdown(ABOUT)
        with gr.Row():
            chosen = gr.Radio(
                [(one.title, name) for name, one in lenses().items()], value=first, label="Lens"
            )
            lane = gr.Radio([(f"Lane {n + 1}", n) for n in range(MAX_LANES)], label="Lane", visible=False)
        groups, fields = {}, {}
        for name, one in lenses().items():
            with gr.Column(visible=name == first) as groups[name]:
                gr.Markdown(one.summary)
                with gr.Row():
                    fields[name] = {p.name: field(p) for p in (*one.parameters, *one.shows)}
                with gr.Accordion("How it works", open=False):
                    gr.Markdown(one.explains)
        source = gr.Textbox(
            SOURCE,
            label="Source",
            info="The input of the encoder; if empty, the text of the lane.",
            visible=False,
            max_lines=3,
        )
        with gr.Row():
            says = gr.Markdown(READING, elem_id="lens-says")
            follow = gr.Button("Follow the lane", size="md", scale=0, min_width=150, visible=False)
        rows, places = [], []
        for _ in range(PLACES):
            with gr.Column(visible=False) as row:
                places.append(captioned(wide=True))
            rows.append(row)
    inputs = [component for one in fields.values() for component in one.values()]
    drawn = [*rows, *(part for place in places for part in place.parts)]

    def show(
        value: str, theme: str, asked: str, name: str, wanted: int | None, text: str | None, *given: Any
    ) -> dict:
        """Draws what the chosen lens sees, as figures. The fields of the other lenses are ignored."""
        one, nothing = lenses()[name], {row: gr.Column(visible=False) for row in rows}
        updates = {groups[other]: gr.Column(visible=other == name) for other in groups}
        updates[source] = gr.Textbox(visible=one.reads == "seq2seq")
        updates[follow] = gr.Button(visible=bool(asked))
        values = dict(zip([(of, n) for of, own in fields.items() for n in own], given, strict=True))
        try:
            seen = screen(runs, value)
            if seen is None or not seen.lanes:
                return updates | nothing | {says: NONE if value else READING}
            updates[lane] = choices(seen, wanted)
            options = one.check({n: v for (of, n), v in values.items() if of == name and v is not None})
            subject = subject_of(runs, seen, asked, wanted)
            frame = frames.seen(runs, loader, seen, subject, one, options[0], text or "")
        except Refusal as error:
            return updates | nothing | {says: escaped(str(error))}
        where = "" if one.reads == "seq2seq" and text else f" {escaped(subject.says)}"
        updates[says] = f"**{escaped(frame.says)}**{where} {escaped(frame.cost)}"
        figures = figures_of(one, frame, look_of(theme), options[1])
        shown = [place.updates(figure) for place, figure in zip(places, figures, strict=False)]
        updates |= {row: gr.Column(visible=n < len(figures)) for n, row in enumerate(rows)}
        return {part: update for each in (updates, *shown) for part, update in each.items()}

    answered = gr.on(
        [on_screen.change, look.change, token.change, chosen.input, lane.input, source.submit]
        + [component.change for component in inputs],
        show,
        [on_screen, look, token, chosen, lane, source, *inputs],
        [*groups.values(), source, follow, lane, says, *drawn],
        js=mark_at_work("lens-says"),
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=2,
        api_visibility="private",
    )
    unmark(answered, "lens-says")
    follow.click(lambda: "", None, token, **UNTRACKED, api_visibility="private")


def field(parameter: Parameter) -> gr.components.Component:
    """The component for an option of a lens."""
    words = {"label": parameter.name.replace("_", " "), "info": parameter.help}
    match parameter.kind:
        case "bool":
            return gr.Checkbox(parameter.default, min_width=200, **words)
        case "choice":
            return gr.Dropdown(list(parameter.choices), value=parameter.default, min_width=200, **words)
        case "float":
            return gr.Slider(
                parameter.low, parameter.high, parameter.default, step=0.005, min_width=240, **words
            )
        case "text":
            return gr.Textbox(parameter.default, max_lines=2, min_width=240, **words)
    return gr.Number(parameter.default, precision=0, min_width=160, **words)


def choices(seen: Screen, wanted: int | None) -> gr.Radio:
    """The choice of lanes that have steps, with `wanted` selected; hidden if there is only one."""
    names = [(one.title, one.index) for one in seen.lanes]
    return gr.Radio(names, value=lane_of(seen, wanted).index, visible=len(names) > 1)


def lane_of(seen: Screen, wanted: int | None) -> Lane:
    """The lane with index `wanted`, otherwise the first one."""
    return next((one for one in seen.lanes if one.index == wanted), seen.lanes[0])


def subject_of(runs: Runs, seen: Screen, asked: str, wanted: int | None) -> Subject:
    """The text before the token for which the inspector asked, otherwise the text of a lane up to the step on
    screen. Refusal with one sentence if there is none.
    """
    if asked:
        of = read(OfToken, parsed(asked.encode(errors="replace")))
        one = next((one for one in seen.lanes if one.index == of.lane), None)
        if of.run == seen.run.id and one is not None:
            before, text = before_token(one.record.trace, of.node)
            return Subject(one, before, f"Before “{text}” in lane {one.number}, at position {len(before)}.")
    one = lane_of(seen, wanted)
    trace = one.record.trace
    steps, nodes = trace.steps[: one.count], trace.nodes()
    written, what = [n for step in steps for commit in step.of(Commit) for n in commit.nodes], "text"
    if not written and (written := best_so_far(trace, steps)):  # a search commits only at its end
        what = "best text so far"
    tokens = [*trace.prompt, *(nodes[n][1] for n in written)]
    return Subject(one, tokens, f"The {what} of lane {one.number} after {one.count} of its steps.")


def best_so_far(trace: Trace, steps: list[Step]) -> list[int]:
    """The nodes of the latest candidate of rank 1; empty if no candidates are ranked."""
    ranked = (e.node for step in reversed(steps) for e in reversed(step.of(Rank)) if e.rank == 1)
    node = next((n for n in ranked if n >= len(trace.prompt)), None)
    return [] if node is None else [*text_before(trace, node), node]


def before_token(trace: Trace, node: int) -> tuple[list[int], str]:
    """The tokens before a node of a trace, and the node's own text. Refusal with one sentence if there are
    none.
    """
    nodes, trunk = trace.nodes(), len(trace.prompt)
    if node < trunk:
        before = trace.prompt[:node]
    else:
        before = [*trace.prompt, *(nodes[n][1] for n in text_before(trace, node))]
    if not before:
        raise Refusal(NOTHING_BEFORE)
    return before, trace.text([nodes[node][1]])


class Frames:
    """The latest frames of lenses, so that changing a picture's options costs no forward."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple, LensFrame] = OrderedDict()

    def seen(
        self,
        runs: Runs,
        loader: Loader,
        seen: Screen,
        subject: Subject,
        lens: Lens,
        options: dict[str, Any],
        source: str,
    ) -> LensFrame:
        """The frame of a lens for a text, computed or cached. Refusal with one sentence."""
        trace = subject.lane.record.trace
        target = check_models_of_trace(trace, loader.find(seen.run.models).wait())["target"]
        tokens = subject.tokens
        if lens.reads == "seq2seq":
            tokens = target.encode(source) if source else tokens
        key = (lens.name, id(target), tuple(tokens), *options.items())
        if key not in self.kept:
            self.kept[key] = runs.on_worker(lambda: look(lens.name, target, tokens, options)).result()
            while len(self.kept) > KEPT:
                self.kept.popitem(last=False)
        return self.kept[key]


def figures_of(lens: Lens, frame: LensFrame, look: str, options: dict[str, Any]) -> list:
    """The figures of a frame."""
    from visualizers.figures.lenses import figures  # on demand: plotly is slow to import

    return figures(lens.figures, frame, look, options)
