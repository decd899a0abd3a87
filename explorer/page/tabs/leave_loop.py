"""Microscope, *Loops and thinking*: how likely each processor would have left a lane's longest loop.

The target reads the text again, and the processors are the real ones.
"""

from dataclasses import dataclass

import gradio as gr

from decoders.logits.processor_order import AGAINST_LOOPS
from decoders.refusal import Refusal
from decoders.trace.repetition import Exits, Loop
from explorer.page.branch import check_models_of_trace
from explorer.page.tabs import UNTRACKED, mark_at_work, unmark
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.page.tabs.on_screen import Lane, Screen, any_lane, screen
from explorer.runs.callbacks import CALLBACKS
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from visualizers.analysis.cost_summary import share
from visualizers.analysis.loops_and_thinking import loops_and_thinking

ABOUT = (
    "### Would it leave the loop?\nEach processor alone, with these values, gives the probability that a "
    "drawn token is not the loop's own. A value that changes nothing leaves its processor out."
)
NO_LOOP = "This lane's text has no loop. The example *A text that loops* in Decode has one."
HEADERS = [
    "Processor",
    "Leaves at a token, mean",
    "In the first copy",
    "In the last copy",
    "Greedy leaves at",
]
LABELS = {
    "temperature": "Temperature",
    "repetition_penalty": "Repetition penalty",
    "presence_penalty": "Presence penalty",
    "frequency_penalty": "Frequency penalty",
    "dry_multiplier": "DRY multiplier",
    "xtc_probability": "XTC probability",
    "no_repeat_ngram_size": "No-repeat n-gram",
}


@dataclass(frozen=True)
class Answer:
    """What the section says once it has computed."""

    says: gr.Markdown
    body: gr.Column

    def cleared(self) -> dict:
        """The component updates without an answer."""
        return {self.says: "", self.body: gr.Column(visible=False)}


def build(on_screen: gr.HTML, look: gr.HTML, lane: gr.Dropdown, runs: Runs, loader: Loader) -> Answer:
    """Declares the section, for the lane that `lane` chooses."""
    gr.Markdown(ABOUT)
    with gr.Row():
        fields = [
            gr.Number(value, label=LABELS[name], min_width=130) for name, value in AGAINST_LOOPS.items()
        ]
        compute = gr.Button("Compute", size="md", scale=0, min_width=120, elem_id="leave-loop")
    says = gr.Markdown(elem_id="leave-loop-says")
    with gr.Column(visible=False) as body:
        by_token = captioned(wide=True)
        table = gr.Dataframe(headers=HEADERS, label="Leaving the loop", interactive=False, wrap=True)
        stays = captioned(wide=True)
    answer = Answer(says, body)

    def show_exits(value: str, theme: str, wanted: int | None, *values: float | None) -> dict:
        try:
            seen = screen(runs, value)
            one = any_lane(seen, wanted)
            report = loops_and_thinking(one.record.trace, one.count) if one else None
            loop = report.longest if report else None
            if seen is None or one is None or report is None or loop is None:
                raise Refusal(NO_LOOP)
            made = compute_exits(runs, loader, seen, one, loop, settings_of(values))
        except Refusal as error:
            return answer.cleared() | {says: escaped(str(error))}
        from visualizers.figures import loops as drawn  # on demand: plotly is slow to import

        texts, first, look = report.texts[loop.begins : loop.stop], loop.begins + 1, look_of(theme)
        return {
            says: f"**{escaped(sentence(made, loop))}**",
            body: gr.Column(visible=True),
            table: exit_cells(made, loop),
            **by_token.updates(drawn.leaving(made, texts, first, look)),
            **stays.updates(drawn.staying(made, first, loop.period, look)),
        }

    asked = gr.on(
        [compute.click, *(field.submit for field in fields)],
        show_exits,
        [on_screen, look, lane, *fields],
        [says, body, table, *by_token.parts, *stays.parts],
        js=mark_at_work("leave-loop-says"),
        **UNTRACKED,
        trigger_mode="always_last",
        concurrency_limit=4,
        api_visibility="private",
    )
    unmark(asked, "leave-loop-says")
    return answer


def settings_of(values: tuple[float | None, ...]) -> dict[str, float]:
    """The values of the fields by their names, checked as a lane's. Refusal with one sentence."""
    from decoders.registry import get

    given = {name: value for name, value in zip(AGAINST_LOOPS, values, strict=True) if value is not None}
    checked = get("sample").check(given)
    return {name: checked[name] for name in given}


def compute_exits(
    runs: Runs, loader: Loader, seen: Screen, one: Lane, loop: Loop, settings: dict[str, float]
) -> list[Exits]:
    """Reads the text again, on the thread that decodes for everybody. Refusal with one sentence if the models
    of the run are gone, or give no whole distributions of what comes next.
    """
    trace = one.record.trace
    target = check_models_of_trace(trace, loader.find(seen.run.models).wait())["target"]

    def read_again() -> list[Exits]:
        from decoders.engine.capabilities import Capability  # torch is loaded by now
        from decoders.logits.loop_exits import exits

        if target.model_kind != "causal" or not target.engine.gives(Capability.FULL_DISTRIBUTION):
            raise Refusal("This needs a model that gives the whole distribution of the next token.")
        return exits(target, trace.prompt, trace.output(), loop, settings, CALLBACKS.between)

    return runs.on_worker(read_again).result()


def sentence(made: list[Exits], loop: Loop) -> str:
    """Which processors end the loop, in one sentence."""
    plain, *others = made
    said = (
        f"Sampling from the target itself leaves this loop with p {share(plain.within(0, loop.period))} "
        "within its first copy"
    )
    if not others:
        return said + "."
    best = max(others, key=lambda one: one.mean)
    ends = [one.title for one in others if one.greedy_leaves is not None]
    greedy = f"; greedy decoding would leave it with {', '.join(ends)}" if ends else ""
    return (
        f"{said}, {share(plain.mean)} per token; {best.title} raises that most, to "
        f"{share(best.mean)} per token{greedy}."
    )


def exit_cells(made: list[Exits], loop: Loop) -> list[list[str]]:
    """The rows of the table."""
    last = (loop.copies - 2) * loop.period

    def greedy(one: Exits) -> str:
        if one.name == "xtc_probability":
            return "depends on its coin"
        if one.greedy_leaves is None:
            return "never"
        return f"token {loop.begins + one.greedy_leaves + 1}"

    return [
        [
            one.title,
            share(one.mean),
            share(one.within(0, loop.period)),
            share(one.within(last, loop.period)),
            greedy(one),
        ]
        for one in made
    ]
