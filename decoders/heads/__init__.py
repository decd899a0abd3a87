"""Heads: small trained modules on a frozen target. Drafters are in folders by what a guess depends on, heads
that score in scorers/, shared parts in parts/. `models/head_kinds.py` is the table of their kinds. See
docs/heads.md.
"""

from decoders.heads.cross_attention.dream import Dream
from decoders.heads.cross_attention.glide import Glide
from decoders.heads.cross_attention.mixture_of_attentions import MixtureOfAttentions
from decoders.heads.feature_drafters.chimera import Chimera
from decoders.heads.feature_drafters.eagle import Eagle
from decoders.heads.feature_drafters.eagle3 import Eagle3
from decoders.heads.feature_drafters.falcon import Falcon
from decoders.heads.feature_drafters.gumiho import Gumiho
from decoders.heads.feature_drafters.kangaroo import Kangaroo
from decoders.heads.feature_drafters.m2r2 import M2R2
from decoders.heads.parts.layers import Entries
from decoders.heads.parts.module import DraftModule
from decoders.heads.parts.taps import Taps, Target, take_taps
from decoders.heads.path_independent.amphista import Amphista
from decoders.heads.path_independent.blockwise import Blockwise
from decoders.heads.path_independent.dflash import DFlash
from decoders.heads.path_independent.fragments import Fragments
from decoders.heads.path_independent.hidden_transfer import HiddenTransfer
from decoders.heads.path_independent.medusa import Medusa
from decoders.heads.path_independent.peagle import PEagle
from decoders.heads.path_independent.prompt_tokens import PPD, PaSS
from decoders.heads.recurrent.clover import Clover
from decoders.heads.recurrent.clover2 import Clover2
from decoders.heads.recurrent.hydra import Hydra, HydraPlus
from decoders.heads.recurrent.mlp_speculator import MlpSpeculator
from decoders.heads.recurrent.redrafter import ReDrafter
from decoders.heads.scorers.acceptance import Acceptance
from decoders.heads.scorers.adaeagle import AdaEagle
from decoders.heads.scorers.aligned import Aligned
from decoders.heads.scorers.autodeco import AutoDeco
from decoders.heads.scorers.filter import Filter
from decoders.heads.scorers.judge import Judge
from decoders.heads.scorers.key_mask import KeyMask
from decoders.heads.scorers.outlook import Outlook
from decoders.heads.scorers.planner import Planner
from decoders.heads.scorers.ranker import Ranker
from decoders.heads.scorers.reward import Reward, read_answers
from decoders.heads.scorers.streams import ParallelStreams
from decoders.heads.scorers.tuned_lens import TunedLens

__all__ = [
    "M2R2",
    "PEagle",
    "PPD",
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
    "DFlash",
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
    "ParallelStreams",
    "Planner",
    "Ranker",
    "Reward",
    "Taps",
    "Target",
    "TunedLens",
    "read_answers",
    "take_taps",
]
