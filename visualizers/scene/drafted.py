"""What a picture of drafts needs: tokens that were drafted, and verified. Knows events, no view."""

from decoders.trace.events import Event, Forward, Propose
from visualizers.scene.words import SOURCES

DRAFTERS = {"draft", *SOURCES}  # sources of tokens that wait for the target's verdict


def drafts(event: Event) -> bool:
    """Whether a draft was verified in a forward of its own, or a drafter proposed a token, as in a file that
    has no forwards.
    """
    if isinstance(event, Forward):
        return event.kind == "verify"
    return isinstance(event, Propose) and event.source in DRAFTERS
