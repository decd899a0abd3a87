"""Slows down loops of Gradio's that never rest, so that a page and an app at rest leave the processor alone.

Knows Gradio's files and its queue, nothing of the page.
"""

from pathlib import Path

import gradio as gr

# Gradio's status tracker counts seconds in every animation frame. That of the loading screen is removed
# before it learns that loading has ended, and counts as long as the page is open. It shows tenths of seconds.
COUNTER = "statustracker-*.js"
EVERY_FRAME, TEN_PER_SECOND = b"window.requestAnimationFrame", b"count=>setTimeout(count,100)"
# Seconds between two looks at the queue: Gradio looks for events every millisecond, and for progress every
# ten, which takes 4 % of a core.
EVENTS, PROGRESS = 0.01, 0.05


def content(path: Path) -> bytes:
    """Returns a file of Gradio's front end; in the status tracker, the counter is slowed down."""
    data = path.read_bytes()
    return data.replace(EVERY_FRAME, TEN_PER_SECOND) if path.match(COUNTER) else data


def poll_less_often(demo: gr.Blocks) -> None:
    """Makes the queue of `demo` look for events and progress less often."""
    demo._queue.sleep_when_free, demo._queue.progress_update_sleep_when_free = EVENTS, PROGRESS
