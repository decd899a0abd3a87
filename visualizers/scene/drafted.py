"""What a picture of drafts needs: tokens that were drafted, and verified."""

from decoders.trace.events import Forward, Propose
from visualizers.scene.view import Reads
from visualizers.scene.words import SOURCES

DRAFTERS = {"draft", *SOURCES}  # sources of tokens that wait for the target's verdict


def drafts(event: Forward | Propose) -> bool:
    """Whether a draft was verified in a forward of its own, or a drafter proposed a token, as in a file that
    has no forwards.
    """
    if isinstance(event, Forward):
        return event.kind == "verify"
    return event.source in DRAFTERS


OF_DRAFTS = Reads((Forward, Propose), drafts)
