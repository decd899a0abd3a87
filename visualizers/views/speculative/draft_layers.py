"""Draft layers: which layers of a draft model with early exits ran for each token.

The same fold as *Layers*, over the draft's forwards. Knows no strategy.
"""

from visualizers.scene.view import view
from visualizers.views.speculative.layers import Layers


@view("draft_layers", "Draft layers")
class DraftLayers(Layers):
    """How deep the draft went for each token, and which forwards took earlier tokens through layers that they
    had not run yet.
    """

    reads, question = "draft", "How deep did the draft go for each token?"
    outlined = "earlier tokens catch up, too"
