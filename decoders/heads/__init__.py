"""Heads: small trained modules beside a frozen target. One class a file; `KINDS` names those that draft,
`SCORERS` those that score; a file may hold either. See docs/heads.md.
"""

from torch import nn

from decoders.heads.acceptance import Acceptance
from decoders.heads.adaeagle import AdaEagle
from decoders.heads.aligned import Aligned
from decoders.heads.amphista import Amphista
from decoders.heads.autodeco import AutoDeco
from decoders.heads.blockwise import Blockwise
from decoders.heads.chimera import Chimera
from decoders.heads.clover import Clover
from decoders.heads.clover2 import Clover2
from decoders.heads.dream import Dream
from decoders.heads.eagle import Eagle
from decoders.heads.eagle3 import Eagle3
from decoders.heads.falcon import Falcon
from decoders.heads.filter import Filter
from decoders.heads.fragments import Fragments
from decoders.heads.glide import Glide
from decoders.heads.gumiho import Gumiho
from decoders.heads.hidden_transfer import HiddenTransfer
from decoders.heads.hydra import Hydra, HydraPlus
from decoders.heads.judge import Judge
from decoders.heads.kangaroo import Kangaroo
from decoders.heads.key_mask import KeyMask
from decoders.heads.layers import Entries
from decoders.heads.m2r2 import M2R2
from decoders.heads.medusa import Medusa
from decoders.heads.mixture_of_attentions import MixtureOfAttentions
from decoders.heads.mlp_speculator import MlpSpeculator
from decoders.heads.module import DraftModule
from decoders.heads.outlook import Outlook
from decoders.heads.planner import Planner
from decoders.heads.prompt_tokens import PPD, PaSS
from decoders.heads.ranker import Ranker
from decoders.heads.redrafter import ReDrafter
from decoders.heads.reward import Reward, read_answers
from decoders.heads.taps import Taps, Target, take_taps
from decoders.heads.tuned_lens import TunedLens

__all__ = [
    "KINDS",
    "M2R2",
    "PPD",
    "SCORERS",
    "Acceptance",
    "Amphista",
    "Blockwise",
    "Clover",
    "Clover2",
    "Hydra",
    "HydraPlus",
    "MlpSpeculator",
    "ReDrafter",
    "AdaEagle",
    "Aligned",
    "AutoDeco",
    "Chimera",
    "DraftModule",
    "Dream",
    "Eagle",
    "Eagle3",
    "Entries",
    "Falcon",
    "Fragments",
    "Gumiho",
    "Filter",
    "Glide",
    "HiddenTransfer",
    "Judge",
    "Kangaroo",
    "KeyMask",
    "Medusa",
    "MixtureOfAttentions",
    "Outlook",
    "PaSS",
    "Planner",
    "Ranker",
    "Reward",
    "Taps",
    "Target",
    "TunedLens",
    "read_answers",
    "take_taps",
]

KINDS: dict[str, type[DraftModule]] = {
    module.kind: module
    for module in (
        *(Medusa, Eagle, Eagle3, Chimera, Falcon, Gumiho, Kangaroo, M2R2, Fragments),
        *(PaSS, PPD, HiddenTransfer, Glide, MixtureOfAttentions, Dream),
        *(Hydra, HydraPlus, MlpSpeculator, ReDrafter, Clover, Clover2, Amphista, Blockwise),
    )
}
SCORERS: dict[str, type[nn.Module]] = {
    module.kind: module
    for module in (
        *(Reward, Acceptance, AdaEagle, Aligned, AutoDeco, Filter, Judge, Outlook, Planner, Ranker),
        *(TunedLens, KeyMask),
    )
}
