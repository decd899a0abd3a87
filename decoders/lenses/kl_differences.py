"""What KL-tracing shows of a text: how far every prediction moves when one token is changed. The arithmetic
is in token_tracers.py.
"""

import time
from typing import Any

import torch

from decoders.engine.kv_cache import OutOfSlots
from decoders.engine.tree import Tree
from decoders.lenses import token_tracers as tracing
from decoders.lenses.frame import LensFrame
from decoders.refusal import Refusal
from decoders.trace.events import Depend, Forward

KIND = "kl_trace"  # of its Depend events: the prediction at the target moved when the source was changed
SHARE, DRAWS = 0.5, 4  # of a masked text; random sets of masks


def kl_frame(model: Any, tokens: list[int], options: dict[str, Any], noise: bool, masked: bool) -> LensFrame:
    """The differences of all pairs of places. noise: a token's embedding gets noise, instead of another token
    in its place; masked: half of the text is masked. Raises Refusal with one sentence if the text is too long
    for the engine.
    """
    began = time.perf_counter()
    try:
        differences, forwards, read = (
            over_masks(model, tokens, options) if masked else over_text(model, tokens, options, noise)
        )
    except OutOfSlots as full:
        raise Refusal(str(full)) from full
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
    caption = dependence_sentence(differences, peaks, masked, words)
    return LensFrame("kl_trace", "KL-tracing", tokens, ["text"], edges, each, caption, data=data)


def over_text(
    model: Any, tokens: list[int], options: dict[str, Any], noise: bool
) -> tuple[torch.Tensor, int, int]:
    """`text_trace` with the tracers that the options ask for."""
    copies, seed = options["copies"], options["seed"]

    def put_in(clean: torch.Tensor) -> tracing.Tracers:
        if not noise:
            return tracing.swaps(tracing.unigrams(clean), tokens, copies, seed)
        table = model.model.get_input_embeddings().weight
        sigma = options["sigma"]
        return [tracing.noisy_embeddings(table[t], copies, sigma, seed + at) for at, t in enumerate(tokens)]

    return tracing.text_trace(model.engine, tokens, put_in)


def over_masks(model: Any, tokens: list[int], options: dict[str, Any]) -> tuple[torch.Tensor, int, int]:
    """`canvas_trace` of the masked-diffusion model with the same tokens; other tokens are drawn evenly.
    Refusal if none is shipped, or the text is one token.
    """
    denoiser = model.companion("diffusion")
    if denoiser is None:
        raise Refusal(f"No masked-diffusion model is shipped with the tokens of {model.name!r}.")
    if len(tokens) < 2:
        raise Refusal("A text of one token cannot be half masked; give a longer one.")
    engine = denoiser.engine
    even = torch.ones(engine.vocabulary)
    if engine.mask < engine.vocabulary:
        even[engine.mask] = 0
    put_in = tracing.swaps(even, tokens, options["copies"], options["seed"])
    sets = tracing.hidden_places(len(tokens), SHARE, DRAWS, options["seed"])
    return tracing.canvas_trace(engine.attach(Tree(tokens)), engine.mask, tokens, sets, put_in)


def dependence_sentence(
    differences: torch.Tensor, peaks: list[int | None], masked: bool, words: list[str]
) -> str:
    """The strongest dependence between two places."""
    apart = differences.nan_to_num().clone()
    apart.fill_diagonal_(0.0)
    if not len(words) > 1 or not apart.max() > 0:
        return "No other prediction moves when a token of this text is changed."
    i, j = divmod(int(apart.argmax()), len(words))
    what = "what is masked at" if masked else "the prediction after"
    far = sum(peak is not None and peak > place + 1 for place, peak in enumerate(peaks))
    more = "" if masked else f" {far} of {len(words)} tokens have their peak further on than the next token."
    return (
        f"Changing {words[i]!r} (position {i + 1}) moves {what} {words[j]!r} (position {j + 1}) most, by "
        f"{apart[i, j]:.2f} nats.{more}"
    )
