"""Drafters on the frozen llama-tiny, a row for each folder of heads. Imports no torch."""

from dataclasses import dataclass

from explorer.training.rows.row import Row


@dataclass(frozen=True, kw_only=True)
class DraftHeads(Row):
    """Drafters on the frozen llama-tiny, by `training/drafters.py`. heads: kind -> settings; a batch has
    `batch` rows of `length` tokens; eight_bits: see `head_files.save`.
    """

    heads: dict[str, dict]
    million_tokens: float
    batch: int = 16
    length: int = 256
    validation_rows: int = 96
    eight_bits: bool = True


ROWS = (
    DraftHeads(
        "llama-tiny-heads",
        "Medusa heads, the feature drafter of EAGLE and the adapter of Kangaroo on the frozen llama-tiny, "
        "trained half on stories and tasks, half on text that the target wrote itself at temperature 1.",
        heads={"medusa": {}, "eagle": {}, "kangaroo": {"exit": 3}},
        million_tokens=4.0,  # half an hour on two cores
    ),
    DraftHeads(
        "llama-tiny-feature-drafters",
        "the drafters of EAGLE-3, Chimera, Falcon and Gumiho on the frozen llama-tiny, trained half on "
        "stories and tasks, half on text that the target wrote itself at temperature 1.",
        heads={"eagle3": {}, "chimera": {}, "falcon": {}, "gumiho": {}},
        million_tokens=0.4,  # a quarter of an hour on one core
    ),
    DraftHeads(
        "llama-tiny-block-drafters",
        "the drafters of DFlash and P-EAGLE on the frozen llama-tiny, trained half on stories and tasks, "
        "half on text that the target wrote itself at temperature 1.",
        heads={"dflash": {}, "peagle": {}},
        million_tokens=0.9,  # half an hour on one core
    ),
    DraftHeads(
        "llama-tiny-recurrent-heads",
        "Hydra, Hydra++, the MLP speculator, ReDrafter, Clover and Clover-2, which read the drafted path "
        "token by token, and Amphista and blockwise heads, which guess all depths in parallel, on the "
        "frozen llama-tiny. They were trained half on stories and tasks, half on text that the target "
        "wrote itself at temperature 1.",
        heads={
            "hydra": {},
            "hydra_plus": {},
            "mlp_speculator": {},
            "redrafter": {},
            "clover": {},
            "clover2": {},
            "amphista": {},
            "blockwise": {},
        },
        million_tokens=0.4,
        batch=8,  # short rows and few of them: many small steps
        length=128,
        validation_rows=8,
    ),
    DraftHeads(
        "llama-tiny-lookahead-heads",
        "modules that draft inside the frozen llama-tiny's own forward (PaSS, PPD, hidden transfer) or "
        "read it by cross-attention (GliDe, Mixture of Attentions, DREAM's text part), trained half on "
        "stories and tasks, half on text that the target wrote itself at temperature 1.",
        heads={
            "pass": {},
            "ppd": {},
            "hidden_transfer": {},
            "glide": {},
            "mixture_of_attentions": {},
            "dream": {},
        },
        million_tokens=0.4,  # seven minutes on one core
        batch=8,
        length=128,
        validation_rows=32,
    ),
    DraftHeads(
        "llama-tiny-m2r2",
        "adapters that let a second stream through llama-tiny's first layers predict early what its last "
        "layer will predict (M2R2, 2025), trained half on stories and tasks, half on text that llama-tiny "
        "wrote itself.",
        heads={"m2r2": {"exit": 3, "rank": 64}},
        million_tokens=1.2,  # a quarter of an hour on two cores
        eight_bits=False,
    ),
)
