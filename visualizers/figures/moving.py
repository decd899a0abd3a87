"""Runs as one SVG that moves: lanes one below the other, which take their steps at the same time.

It needs no script, so it moves wherever a picture may stand, such as in a README. Every frame is a picture of
the trace after some steps, drawn in the layout of the last one, so that nothing shifts. To readers who asked
for less motion it shows the end.
"""

from collections.abc import Iterator
from html import escape

from decoders.trace.trace import Trace
from visualizers.figures.scene_figure import picture, placed, plan
from visualizers.figures.svg import Frame, all_shapes, clean, frame, heading, note
from visualizers.figures.theme import SANS, theme

WIDE = 760  # pixels: narrow, so that letters stay legible on a page
AXIS = 36  # pixels of the numbers below the columns, which are left out
STEP, HOLD = 1.1, 4  # seconds of a step; steps for which the end stays
FADED = "animation:none!important;visibility:hidden"


def moving(lanes: list[tuple[Trace, str]], look: str = "light") -> str:
    """The SVG of some (trace, view), which move until the longest has ended, and then begin again.

    Raises Refusal with one sentence if a view cannot draw its trace.
    """
    ticks = max(len(trace.steps) for trace, _ in lanes) + HOLD
    drawn, rules, low, wide, ground = [], [], 0.0, 0.0, theme(look).surface["bg"]
    for number, (trace, view) in enumerate(lanes):
        frames = list(frames_of(trace, view, look))
        last = frames[-1]
        drawn.append(f'<g transform="translate(0 {low:g})">')
        for step, at in enumerate(frames):
            name = f"l{number}s{step}"
            end = step + 1 if at is not last else ticks
            rules.append(rule(name, step / ticks, end / ticks))
            kept = " end" if at is last else ""
            drawn.append(f'<g class="step{kept}" id="{name}">{moment(at)}</g>')
        drawn.append("</g>")
        low, wide = low + last.figure.layout.height - AXIS, max(wide, last.figure.layout.width)
    says = " ".join(f"{trace.title}: {trace.text()}" for trace, _ in lanes)
    style = (
        f".step{{visibility:hidden;animation:{ticks * STEP:g}s step-end infinite}}{''.join(rules)}"
        f"@media (prefers-reduced-motion:reduce){{.step{{{FADED}}}.end{{visibility:visible}}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:g}" height="{low:g}" '
        f'viewBox="0 0 {wide:g} {low:g}" font-family="{escape(SANS)}"><desc>{clean(says)}</desc>'
        f'<style>{style}</style><rect width="{wide:g}" height="{low:g}" fill="{ground}"/>'
        f"{''.join(drawn)}</svg>\n"
    )


def frames_of(trace: Trace, view: str, look: str) -> Iterator[Frame]:
    """The pictures after each step, from none to all, in the places of the last one."""
    end = picture(trace, view)
    shared = plan(end, WIDE - 20 - (end.head.get("left") or 8) - (end.head.get("right") or 8))
    for step in range(len(trace.steps) + 1):
        yield frame(placed(trace, picture(trace, view, step), shared, theme(look), None))


def moment(at: Frame) -> str:
    """Title and legend, marks, words beside them, and the sentence below."""
    *beside, sentence = (note(one, at) for one in at.figure.layout.annotations)
    above = "".join([*heading(at.figure), *all_shapes(at), *beside])
    return f'{above}<g transform="translate(0 -{AXIS})">{sentence}</g>'


def rule(name: str, start: float, end: float) -> str:
    """The CSS by which a group is seen in a part of the time, from `start` to `end` of 1."""
    seen = f"{100 * start:.2f}%{{visibility:visible}}"
    until = f"{100 * end:.2f}%{{visibility:hidden}}" if end < 1 else ""
    before = "0%{visibility:hidden}" if start else ""
    return f"#{name}{{animation-name:{name}}}@keyframes {name}{{{before}{seen}{until}}}"
