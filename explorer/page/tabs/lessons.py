"""The tab Lessons: all guided lessons by topic, each with a button that starts it in the lanes.

The page's script draws the guide beside the lanes (assets/web/page/lessons.js). Knows no lesson by name: it
shows every lesson in assets/lessons.
"""

import json
from itertools import groupby

import gradio as gr

from explorer.lessons.lesson import lessons
from explorer.page.tabs.captioned import escaped

ABOUT = (
    "Each lesson decodes a prompt in the page's own lanes and stops where something interesting happens. It "
    "asks a question, you guess, and the answer comes from the run that you see."
)


def build() -> None:
    """Declares the contents of the tab."""
    gr.Markdown(ABOUT)
    numbered = enumerate(lessons().values(), 1)
    for group, members in groupby(numbered, lambda one: one[1]["group"]):
        gr.Markdown(f"## {escaped(group)}")
        with gr.Row(elem_classes="lesson-list"):
            for number, lesson in members:
                with gr.Column(elem_classes="lesson-card", min_width=280):
                    gr.Markdown(card(number, lesson))
                    start = gr.Button(f"Start lesson {number}", variant="primary", size="md", scale=0)
                    start.click(None, js=f"() => ExplorerPage.app.guide.start({json.dumps(lesson['name'])})")


def card(number: int, lesson: dict) -> str:
    """The title, subject and length of a lesson, as Markdown."""
    lanes, stops = len(lesson["setup"]["lanes"]), len(lesson["stops"])
    length = f"{lanes} {'lane' if lanes == 1 else 'lanes'} · {stops} stops"
    return f"### {number}. {escaped(lesson['title'])}\n{escaped(lesson['about'])}\n\n*{length}*"
