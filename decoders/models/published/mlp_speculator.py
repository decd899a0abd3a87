"""The MLP speculator in IBM's format, which vLLM reads: `emb.K`, `proj.K`, `ln.K`, `head.K`, perhaps with the
prefix `speculator.`; with `tie_weights` those of later depths may be missing or repeated.
"""

import torch

from decoders.heads import MlpSpeculator, Target
from decoders.models.published.config_keys import only, says
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

PARTS = {"emb": ("weight",), "proj": ("weight",), "ln": ("weight", "bias"), "head": ("weight",)}
# The last two choose how many candidates IBM's own server tries; a lane has parameters for that.
USED = {
    "emb_dim",
    "inner_dim",
    "n_predict",
    "num_lookahead_tokens",
    "scale_input",
    "tie_weights",
    "tie_wts",
    "vocab_size",
    "n_candidates",
    "top_k_tokens_per_head",
}


def read_mlp_speculator(name: str, config: dict, tensors: Tensors, target: Target) -> MlpSpeculator:
    """Reads the speculator. Raises Refusal with one sentence if it does not fit the target."""
    plain = {key.removeprefix("speculator."): value for key, value in tensors.items()}
    only(name, config, USED)
    depth = config["n_predict"]
    inner = plain["proj.0.weight"].shape[0]
    same(name, "hidden size", plain["proj.0.weight"].shape[1], target.width, "the target")
    same(name, "vocabulary", plain["head.0.weight"].shape[0], len(target.head), "the target")
    says(name, config, "vocab_size", len(target.head), "head.0")
    says(name, config, "emb_dim", target.width, "proj.0")
    says(name, config, "inner_dim", inner, "proj.0")
    tied = bool(config.get("tie_weights", config.get("tie_wts", False)))
    module = MlpSpeculator(
        target,
        depth=depth,
        inner=inner,
        tied=tied,
        scale_input=bool(config.get("scale_input", False)),
        own_tables=True,
    )
    if tied:
        drop_copies(name, plain, depth)
    counts = {part: len(getattr(module, part)) for part in PARTS}
    places = {
        f"{part}.{at}.{kind}": f"{part}.{at}.{kind}"
        for part, kinds in PARTS.items()
        for at in range(counts[part])
        for kind in kinds
    }
    fill(name, module, plain, places)
    return module


def drop_copies(name: str, tensors: Tensors, depth: int) -> None:
    """Removes copies of tied weights. Raises Refusal with one sentence if a copy differs."""
    for part, kinds in PARTS.items():
        kept = 1 if part == "proj" else 0
        for at in range(kept + 1, depth):
            for kind in kinds:
                copy = tensors.pop(f"{part}.{at}.{kind}", None)
                if copy is not None and not torch.equal(copy, tensors[f"{part}.{kept}.{kind}"]):
                    raise Refusal(
                        f"The heads {name!r} contradict themselves: their weights are tied, and "
                        f"{part}.{at}.{kind} is another tensor."
                    )
