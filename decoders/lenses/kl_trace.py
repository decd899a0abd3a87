"""KL-tracing (2025, of videos), ported to text: which later predictions move when one token is changed.
What is ours in the port is named in token_tracers.py.
"""

from typing import Any

from decoders.engine.capabilities import Capability
from decoders.lenses.frame import LensFrame
from decoders.lenses.registry import lens
from decoders.parameters import choice, integer, real
from decoders.refusal import Refusal

LONGEST = 96  # tokens: a text of T tokens reads copies of T (T + 1) / 2 each
OTHERS, NOISE, MASKED = "other tokens", "noise", "other tokens, text half masked"


@lens(
    name="kl_trace",
    title="KL-tracing",
    papers=("taming-generative-video-models-for-zero-shot",),
    needs=(Capability.FULL_DISTRIBUTION,),
    limit=LONGEST,
    parameters=(
        choice(
            "tracer",
            OTHERS,
            "What a token is changed into: other tokens, its embedding with noise, or other tokens in a text "
            "half of which a masked-diffusion model has to fill.",
            (OTHERS, NOISE, MASKED),
        ),
        integer("copies", 4, "How many changed copies are averaged.", low=1, high=8),
        real("sigma", 0.5, "Noise, as a share of the embedding's norm.", low=0.05, high=2.0),
        integer("guard", 0, "Number of places after a token at which no peak is sought.", low=0, high=16),
        integer("seed", 0, "Seed for the tokens that replace others.", low=0, high=9999),
    ),
    shows=(
        integer("edges", 24, "Number of edges that are drawn, the strongest first.", low=0, high=200),
        integer(
            "place", 0, "Draw only the edges of this token, counted from 1; 0: all edges.", low=0, high=96
        ),
    ),
    figures=("kl_map", "kl_edges"),
)
def kl_trace(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """Changes one token at a time and shows how far every later prediction moves.

    1. The text is read once: `p_j` predicts what follows place j.
    2. Token i is replaced by other tokens, drawn from the mean of what the model predicts in this text, or
       its embedding gets noise; everything after it stays the same.
    3. `D[i, j]` is the mean of `KL(p_j || p_j')` over the copies. Each copy is a branch of the engine's token
       tree, so the tokens before i are never read again.

    The peak of a row is the later place whose prediction depends most on this token. With masks, a
    masked-diffusion model that has the same tokens fills random halves of the text, and both sides of a
    changed token are read. Unlike information flow this is causal, and it takes many forwards.
    """
    from decoders.lenses.kl_differences import kl_frame

    noise, masked = (options["tracer"] == kind for kind in (NOISE, MASKED))
    if noise and not model.engine.gives(Capability.EMBEDDINGS):
        raise Refusal(f"KL-tracing with noise needs {Capability.EMBEDDINGS}; choose {OTHERS!r}.")
    return kl_frame(model, tokens, options, noise, masked)
