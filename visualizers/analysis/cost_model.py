"""What one forward of a transformer costs: operations, bytes, and the seconds that the roofline gives them.
Follows the counts of AI and Memory Wall (Gholami et al. 2024) and the table of Step-3 (StepFun 2025). Nothing
is measured, and the bytes of activations are left out.
"""

from dataclasses import dataclass

from decoders.refusal import Refusal
from visualizers.analysis.roofline import Device, parts


@dataclass(frozen=True)
class Shape:
    """A decoder's shape. `shared`: keys and values are one and the same cached vector, as in latent attention
    (DeepSeek's MLA). `gated`: the feed-forward layer has three matrices instead of two.
    """

    layers: int
    width: int
    query_heads: int
    kv_heads: int
    head_width: int
    ff_width: int
    vocabulary: int
    gated: bool = True
    shared: bool = False


def layer_weights(shape: Shape) -> int:
    """Parameters of one layer that a forward multiplies by. Latent attention's low-rank projections are not
    modelled. Raises ValueError for a shape with shared keys and values.
    """
    if shape.shared:
        raise Refusal("Weights are counted for separate keys and values only; ask for attention() instead.")
    projections = shape.width * shape.head_width * (2 * shape.query_heads + 2 * shape.kv_heads)
    return projections + (3 if shape.gated else 2) * shape.width * shape.ff_width


def cached(shape: Shape) -> int:
    """Elements of cache per token and layer."""
    return (1 if shape.shared else 2) * shape.kv_heads * shape.head_width


def attention(shape: Shape, n: int, batch: int = 1, new_tokens: int = 1, cache_bytes: float = 2) -> dict:
    """Attention alone over `n` keys: {flops, bytes, ai}; two operations per element of scores and values."""
    flops = 4 * batch * new_tokens * shape.layers * shape.query_heads * shape.head_width * n
    moved = batch * shape.layers * cached(shape) * n * cache_bytes
    return {"flops": flops, "bytes": moved, "ai": flops / moved}


def step(
    shape: Shape,
    device: Device,
    n: int,
    batch: int = 1,
    new_tokens: int = 1,
    weight_bytes: float = 2,
    cache_bytes: float = 2,
) -> dict:
    """One forward of `new_tokens` tokens in each of `batch` rows; each token attends to `n` keys, and logits
    are computed for all of them: {flops, bytes_weights, bytes_kv, ai (operations per byte), seconds}.
    Raises ValueError for counts below 1.
    """
    if min(n, batch, new_tokens) < 1:
        raise Refusal("A forward takes at least one key, one row and one new token.")
    weights = shape.layers * layer_weights(shape) + shape.width * shape.vocabulary
    keys = attention(shape, n, batch, new_tokens, cache_bytes)
    flops = 2 * batch * new_tokens * weights + keys["flops"]
    moved = weight_bytes * weights + keys["bytes"]
    return {
        "flops": flops,
        "bytes_weights": weight_bytes * weights,
        "bytes_kv": keys["bytes"],
        "ai": flops / moved,
        "seconds": device.launch * 1e-6 + max(parts(device, moved, flops)),
    }
