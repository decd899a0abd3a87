"""KL-tracing (2025, of videos), ported to text: which later predictions move when one token is changed.
What is ours in the port is named in token_tracers.py. Knows engines and tokens, no picture.
"""

import time
from typing import Any

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.kv_cache import OutOfSlots
from decoders.engine.tree import Tree
from decoders.lenses import token_tracers as tracing
from decoders.lenses.frame import LensFrame
from decoders.lenses.registry import lens
from decoders.strategy import Parameter
from decoders.trace.events import Depend, Forward

KIND = "kl_trace"  # of its Depend events: the prediction at the target moved when the source was changed
LONGEST = 96  # tokens: a text of T tokens reads copies of T (T + 1) / 2 each
BY, OTHERS, NOISE, MASKED = "changed by", "other tokens", "noise", "other tokens, text half masked"
SHARE, DRAWS = 0.5, 4  # of a masked text; random sets of masks


@lens(
    name="kl_trace",
    title="KL-tracing",
    papers=("taming-generative-video-models-for-zero-shot",),
    needs=(Capability.FULL_DISTRIBUTION,),
    limit=LONGEST,
    parameters=(
        Parameter(
            "tracer",
            "choice",
            OTHERS,
            "What a token is changed into: other tokens, its embedding with noise, or other tokens in a text "
            "half of which a masked-diffusion model has to fill.",
            choices=(OTHERS, NOISE, MASKED),
        ),
        Parameter("copies", "int", 4, "How many changed copies are averaged.", low=1, high=8),
        Parameter("sigma", "float", 0.5, "Noise, as a share of the embedding's norm.", low=0.05, high=2.0),
        Parameter("guard", "int", 0, "Places after a token that no peak is sought at.", low=0, high=16),
        Parameter("seed", "int", 0, "Of the tokens that are put in.", low=0, high=9999),
    ),
    shows=(
        Parameter("edges", "int", 24, "How many edges are drawn: the strongest.", low=0, high=200),
        Parameter(
            "place", "int", 0, "The token whose edges alone are drawn, from 1 on; 0: all.", low=0, high=96
        ),
    ),
    figures=("kl_map", "kl_edges"),
)
def kl_trace(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """Changes one token at a time and shows how far every later prediction moves.

    1. The text is read once: `p_j` predicts what follows place j.
    2. Token i is replaced by other tokens, drawn from the mean of what the model predicts in this text, or
    its embedding gets noise; everything after it stays.
    3. `D[i, j]` is the mean of `KL(p_j || p_j')` over the copies. Each copy is a branch of the engine's token
       tree, so that what stands before i is never read again.

    The peak of a row is the later place that listens most to this token. With masks, a masked-diffusion model
    that has the same tokens fills random halves of the text, and both sides of a changed token are read.
    Unlike information flow this is causal, and it takes many forwards.
    """
    began = time.perf_counter()
    masked = options["tracer"] == MASKED
    try:
        differences, forwards, read = (over_masks if masked else over_text)(model, tokens, options)
    except OutOfSlots as full:
        raise ValueError(str(full)) from full
    peaks = [None] * len(tokens) if masked else tracing.peaks(differences, options["guard"])
    edges = [
        Depend(i, j, float(differences[i, j]), KIND)
        for i in range(len(tokens))
        for j in range(len(tokens))
        if i != j and differences[i, j] > 0
    ]
    seconds = (time.perf_counter() - began) / forwards
    each = [Forward("target", "lens", read // forwards, 1, 0.0, seconds) for _ in range(forwards)]
    each[0].tokens += read - forwards * (read // forwards)
    data = {"differences": differences, "peaks": peaks, "masked": masked}
    words = [model.bytes_of(t).decode("utf-8", "replace") for t in tokens]
    caption = sentence(differences, peaks, masked, words)
    return LensFrame("kl_trace", "KL-tracing", tokens, ["text"], edges, each, caption, data=data)


def over_text(model: Any, tokens: list[int], options: dict[str, Any]) -> tuple[torch.Tensor, int, int]:
    """`text_trace` with the tracers that the options ask for. ValueError if noise is asked of a model that
    does not read embeddings.
    """
    copies, seed = options["copies"], options["seed"]
    if options["tracer"] == NOISE and not model.engine.gives(Capability.EMBEDDINGS):
        raise ValueError(f"KL-tracing with noise needs {Capability.EMBEDDINGS}; choose {OTHERS!r}.")

    def put_in(clean: torch.Tensor) -> tracing.Tracers:
        if options["tracer"] != NOISE:
            return tracing.swaps(tracing.unigrams(clean), tokens, copies, seed)
        table = model.model.get_input_embeddings().weight
        sigma = options["sigma"]
        return [tracing.noisy(table[t], copies, sigma, seed + at) for at, t in enumerate(tokens)]

    return tracing.text_trace(model.engine, tokens, put_in)


def over_masks(model: Any, tokens: list[int], options: dict[str, Any]) -> tuple[torch.Tensor, int, int]:
    """`canvas_trace` of the masked-diffusion model with the same tokens; other tokens are drawn evenly.
    ValueError if none is shipped, or the text is one token.
    """
    denoiser = model.companion("diffusion")
    if denoiser is None:
        raise ValueError(f"No masked-diffusion model is shipped with the tokens of {model.name!r}.")
    if len(tokens) < 2:
        raise ValueError("A text of one token cannot be half masked; give a longer one.")
    engine = denoiser.engine
    even = torch.ones(engine.vocabulary)
    if engine.mask < engine.vocabulary:
        even[engine.mask] = 0
    put_in = tracing.swaps(even, tokens, options["copies"], options["seed"])
    sets = tracing.hidden_places(len(tokens), SHARE, DRAWS, options["seed"])
    return tracing.canvas_trace(engine.attach(Tree(tokens)), engine.mask, tokens, sets, put_in)


def sentence(differences: torch.Tensor, peaks: list[int | None], masked: bool, words: list[str]) -> str:
    """The strongest dependence between two places."""
    apart = differences.nan_to_num().clone()
    apart.fill_diagonal_(0.0)
    if not len(words) > 1 or not apart.max() > 0:
        return "No other prediction moves when a token of this text is changed."
    i, j = divmod(int(apart.argmax()), len(words))
    what = "what is masked at" if masked else "the prediction after"
    far = sum(peak is not None and peak > place + 1 for place, peak in enumerate(peaks))
    more = "" if masked else f" {far} of {len(words)} tokens have their peak further on than the next place."
    return (
        f"Changing {words[i]!r} (place {i + 1}) moves {what} {words[j]!r} (place {j + 1}) most, by "
        f"{apart[i, j]:.2f} nats.{more}"
    )
