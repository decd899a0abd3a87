"""Spares Gradio needless work: its front end while a page mounts, and both of its sides while nothing
happens.
"""

from pathlib import Path

import gradio as gr

# Name of a front-end file, what is replaced in it, and by what. Each stands in one file, once.
CHANGES = (
    # The status tracker counts seconds in every animation frame. That of the loading screen is removed before
    # it learns that loading has ended, and counts as long as the page is open. It shows tenths of seconds.
    ("statustracker-*.js", b"window.requestAnimationFrame", b"count=>setTimeout(count,100)"),
    # The logo that moves while Gradio loads is hidden here, and moves for four more seconds when it is gone.
    (
        "statustracker-*.js",
        b"O(()=>(v(),()=>{F(m,!0)}))",
        b"O(()=>(v(),()=>{F(m,!0),f.set([0,0],{hard:!0}),p.set([0,0],{hard:!0})}))",
    ),
    # For a second, each frame looks whether a page around this one wants to know its height. Mostly there is
    # none.
    ("Blocks-*.js", b"i++<60&&", b"window.parent!==window&&i++<60&&"),
    # While mounting, each of 500 components looks for its events among all, which are proxies that take long
    # to read: a third of the mount. It reads a copy now.
    (
        "core-*.js",
        b"find_attached_events(e,t){let n=t.filter(",
        b"find_attached_events(e,t){this.of!==t&&(this.of=t,this.copy=t.map(e=>"
        b"({targets:JSON.parse(JSON.stringify(e.targets))})));let n=this.copy.filter(",
    ),
    # Before each event, the state of its component is looked for in the tree of all, also where the event
    # brings nothing to put there.
    (
        "Blocks-*.js",
        b"async set_event_args(e,t){",
        b"async set_event_args(e,t){if(Object.keys(t).length===0)return()=>{};",
    ),
)
# Seconds between two looks at the queue: Gradio looks for events every millisecond, and for progress every
# ten, which takes 4 % of a core.
EVENTS, PROGRESS = 0.01, 0.05


def content(path: Path) -> bytes:
    """Returns a file of Gradio's front end, with the changes that it needs."""
    data = path.read_bytes()
    for name, old, new in CHANGES:
        if path.match(name):
            data = data.replace(old, new)
    return data


def relieve_queue(demo: gr.Blocks) -> None:
    """Makes the queue of `demo` look for events and progress less often and compute no statistics: after each
    event those of the last 10,000, for a monitoring page that the app does not have.
    """
    queue = demo._queue
    queue.sleep_when_free, queue.progress_update_sleep_when_free = EVENTS, PROGRESS
    queue.compute_analytics_summary = lambda records: queue.cached_event_analytics_summary
