"""AutoDeco's heads in the format of their authors: `temp_head.mlp` and `top_p_head.mlp`, each a hidden layer
(0) and an output (2), alone in a file or merged with the model that they are for (`llm.`).

Their config is the model's own with four keys more. Statistics differ from those of heads trained here: the
temperature gets 1e-8 and no floor, the logarithm too, and the variance is that of a sample.
"""

import torch

from decoders.heads import AutoDeco, Target
from decoders.heads.scorers.autodeco import TOP, Published
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

HEADS = ("temp_head.", "top_p_head.")
SMALL = 1e-8


def read_autodeco(name: str, config: dict, tensors: Tensors, target: Target) -> AutoDeco:
    """Reads the heads. Raises Refusal if they do not fit the target."""
    same(name, "hidden size", config.get("hidden_size", target.width), target.width, "the target")
    same(name, "vocabulary", config.get("vocab_size", len(target.head)), len(target.head), "the target")
    own = {key: value for key, value in tensors.items() if key.startswith(HEADS)}
    trained = [config.get(f"enable_{kind}_head", True) for kind in ("temperature", "top_p")]
    if not any(trained):
        raise Refusal(f"The heads {name!r} were saved with both heads off, so that none of them was trained.")
    more = config.get("use_enhanced_features", True)
    published = Published(5 if more else 1, statistics if more else no_statistics, *trained)
    module = AutoDeco(target, len(own["temp_head.mlp.0.weight"]), published)
    places = {
        f"{theirs}mlp.{layer}.{kind}": f"{ours}.{layer}.{kind}"
        for theirs, ours in zip(HEADS, ("temperature", "top_p"), strict=True)
        for layer in (0, 2)
        for kind in ("weight", "bias")
    }
    fill(name, module, own, places)
    return module


def statistics(logits: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The authors' [N, 4] of logits [N, V] at temperatures t [N]: the largest probability, the entropy in
    nats, the variance, the sum of the TOP largest.
    """
    p = (logits.float() / (t[:, None] + SMALL)).softmax(-1)
    top = p.topk(min(TOP, p.shape[-1]), dim=-1).values
    return torch.stack([top[:, 0], -(p * (p + SMALL).log()).sum(-1), p.var(-1), top.sum(-1)], -1)


def no_statistics(logits: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """[N, 0]: heads without the authors' enhanced features read T alone."""
    return logits.new_zeros(len(logits), 0, dtype=torch.float32)
