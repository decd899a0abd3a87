"""Draft layers: which layers of a draft model with early exits ran for each token.

The same fold as *Layers*, over the draft's forwards. Knows no strategy.
"""

from decoders.trace.events import Event, Forward
from visualizers.scene.view import view
from visualizers.views.speculative.layers import Layers


def exits_early(event: Event) -> bool:
    """Whether a draft model ran a part of its layers."""
    return isinstance(event, Forward) and event.model == "draft" and event.share < 1


@view("draft_layers", "Draft layers", reads=exits_early)
class DraftLayers(Layers):
    """How deep the draft went for each token, and which forwards took earlier tokens through layers that they
    had not run yet.
    """

    model, question = "draft", "How deep did the draft go for each token?"
    outlined = "earlier tokens catch up, too"
