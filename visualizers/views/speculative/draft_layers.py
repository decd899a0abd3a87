"""Draft layers: which layers of a draft model with early exits ran for each token.

The same fold as *Layers*, over the draft's forwards.
"""

from decoders.trace.events import Forward
from visualizers.scene.view import Reads, view
from visualizers.views.speculative.layers import Layers

EXITS_EARLY = Reads((Forward,), lambda event: event.model == "draft" and event.share < 1)


@view("draft_layers", "Draft layers", reads=EXITS_EARLY)
class DraftLayers(Layers):
    """How deep the draft went for each token, and which forwards took earlier tokens through layers that they
    had not run yet.
    """

    model, question = "draft", "How deep did the draft go for each token?"
    outlined = "earlier tokens catch up, too"
