"""The app in a process of its own, which a test may kill: python -m tests.browser.tiny_server PORT.

Its lanes are scripted, so that it needs no models and is there within seconds.
"""

import sys

from explorer.page.layout import build
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import RunRequest
from tests.helpers.scripted_lane import ScriptedLane

WORDS = [f" word{i}".encode() for i in range(300)]


def lanes(request: RunRequest) -> list[ScriptedLane]:
    """As many as are asked for, of the models that the page has chosen."""
    made = [ScriptedLane(WORDS, 0.1) for _ in request.lanes]
    for lane in made:
        lane.trace.models = {"target": "tiny", "draft": "tiny-draft"}
    return made


if __name__ == "__main__":
    loader = Loader("tiny", "tiny-draft")
    loader.done.set()  # a run need not wait for models
    demo, launch = build(Runs(lanes), loader)
    demo.launch(server_name="127.0.0.1", server_port=int(sys.argv[1]), **launch)
