"""Small architectures of papers, trained for minutes, a row each. Imports no torch."""

from dataclasses import dataclass, field

from explorer.training.rows.row import Row


@dataclass(frozen=True, kw_only=True)
class SmallArchitecture(Row):
    """Trained by `training/small.py`. model_type: its name in `decoders/models/architectures/`; starts: block
    -> the layer of `llama-tiny-draft` whose weights it takes; silent: those of these blocks that add nothing
    at first; attentions: as `starts`, for single attentions; bridge: the layer whose keys and values begin
    the shared ones; zeros: weights that begin at zero; note: what the model is good for.
    """

    model_type: str
    shape: dict
    million_tokens: float
    note: str
    in_bytes: bool = False
    starts: dict[str, int] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    attentions: dict[str, int] = field(default_factory=dict)
    bridge: int | None = None
    zeros: tuple[str, ...] = ()


DRAFT_SHAPE = dict(hidden_size=128, intermediate_size=352, num_attention_heads=4, num_key_value_heads=4)
ROWS = (
    SmallArchitecture(
        "llama-tiny-yoco",
        "You Only Cache Once: two layers with sliding windows of 32 tokens produce one set of keys and "
        "values, which two upper layers read; a prompt runs through the upper half only at its last token.",
        model_type="tiny_yoco",
        shape=DRAFT_SHAPE | dict(num_hidden_layers=4, window=32),
        million_tokens=0.05,
        note="Good for: seeing a cache of n + W L / 2 rows instead of n L, and a prompt that skips half of "
        "the layers. A draft's nodes need both halves, so verification skips nothing. Simplified: four "
        "layers.",
        starts={"lower.blocks.0": 0, "lower.blocks.1": 0, "upper.0": 1, "upper.1": 1},
        silent=("lower.blocks.1", "upper.1"),
        bridge=1,
    ),
    SmallArchitecture(
        "llama-tiny-sambay",
        "SambaY, a decoder-hybrid-decoder: retention and sliding windows in the lower layers, then one full "
        "attention, and above it a memory unit, which reads no cache, and a cross-attention.",
        model_type="tiny_sambay",
        shape=DRAFT_SHAPE | dict(num_hidden_layers=8, window=32),
        million_tokens=0.025,
        note="Good for: seeing an upper layer that reads no cache: a generated token reads L / 4 caches "
        "instead of L / 2 (YOCO) or L. Simplified: gated retention stands in for Mamba.",
        starts={f"lower.blocks.{at}": 0 for at in range(4)}
        | {"publisher": 0, "full": 1, "upper.0": 1, "upper.1": 1},
        silent=("lower.blocks.0", "lower.blocks.2", "lower.blocks.3", "publisher", "upper.0", "upper.1"),
        bridge=1,
    ),
    SmallArchitecture(
        "llama-tiny-flowformer",
        "Flow-Attention in four layers: queries and keys compete as sinks and sources of a flow, and the "
        "state kept of a text has the same size, however long the text is.",
        model_type="tiny_flowformer",
        shape=DRAFT_SHAPE | dict(num_hidden_layers=4),
        million_tokens=0.025,
        note="Good for: seeing a state that stays the same size, so that every branch of a draft needs a "
        "copy of it. Feed-forward nets are the draft's; its attention had to be learned again and is far "
        "from it.",
        starts={f"layers.blocks.{at}": at // 2 for at in range(4)},
        zeros=("places.weight",),
    ),
    SmallArchitecture(
        "llama-tiny-chunked-memory",
        "three attentions in each of two layers: over the whole text, over the current chunk of 32 tokens, "
        "and over eight gated summaries of the chunks before it.",
        model_type="tiny_chunked_memory",
        shape=DRAFT_SHAPE | dict(num_hidden_layers=2, chunk=32, slots=8),
        million_tokens=0.025,
        note="Good for: seeing a queue of summaries beside a cache; it begins as the draft, to which two "
        "new paths add nothing at first. Reconstructed: the paper's details are not public in code.",
        starts={"layers.0": 0, "layers.1": 1},
        attentions={"layers.0.whole": 0, "layers.1.whole": 1},
        zeros=tuple(f"layers.{at}.{part}.o.weight" for at in range(2) for part in ("local", "memory")),
    ),
    SmallArchitecture(
        "llama-tiny-dna",
        "a distributed neural architecture. At each of four steps, a router sends every token to one of four "
        "modules or leaves it unchanged.",
        model_type="tiny_dna",
        shape=DRAFT_SHAPE | dict(num_hidden_layers=4, pool=4),
        million_tokens=0.025,
        note="Good for: seeing which route each token takes. The routers are reconstructed; what they "
        "learned in so short a training says nothing about what they would learn in a long one.",
        starts={f"pool.{at}": at // 2 for at in range(4)},
    ),
    SmallArchitecture(
        "tiny-megabyte",
        "MEGABYTE on bytes: a global transformer reads patches of four bytes, a local one writes the bytes "
        "of a patch.",
        model_type="tiny_megabyte",
        shape=dict(
            hidden_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            patch=4,
            global_width=128,
            global_layers=3,
            global_heads=4,
        ),
        million_tokens=0.12,
        note="Good for: seeing few expensive steps and many cheap ones; tokens are bytes. It hardly writes "
        "words.",
        in_bytes=True,
    ),
    SmallArchitecture(
        "tiny-mblm",
        "a multiscale byte language model of three stages: patches of 32 bytes, patches of 4 bytes and "
        "single bytes. The slowest stage is gated retention, the others are transformers.",
        model_type="tiny_mblm",
        shape=dict(hidden_size=64, num_attention_heads=4),
        million_tokens=0.12,
        note="Good for: seeing three clock rates in one model; tokens are bytes. It hardly writes words. "
        "Simplified: gated retention stands in for the paper's Mamba.",
        in_bytes=True,
    ),
)
