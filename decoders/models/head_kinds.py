"""The kinds of heads, in one table: kind -> where its class is and what it is attached to.

The table imports no torch, so that what lists models can read it; a class is imported when a folder of its
kind is read. Another kind of heads is one more entry.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from decoders.packages import module

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class HeadKind:
    """`place`: its class, below `decoders.heads`. `alone`: whether a folder of this kind holds nothing else
    and bears its name in lists. `role`: the model that it is a head of. `partner`: the setting that names the
    other model, for heads that are trained for a pair.
    """

    place: str
    alone: bool = False
    role: str = "target"
    partner: str | None = None

    @property
    def head(self) -> "type[nn.Module]":
        """Its class: takes a `Target` and the settings of a file, and declares `kind`, `reads` and
        `settings`.
        """
        file, _, name = self.place.partition(":")
        return getattr(module(f"decoders.heads.{file}"), name)


KINDS = {
    # drafters
    "medusa": HeadKind("path_independent.medusa:Medusa"),
    "eagle": HeadKind("feature_drafters.eagle:Eagle"),
    "eagle3": HeadKind("feature_drafters.eagle3:Eagle3"),
    "chimera": HeadKind("feature_drafters.chimera:Chimera"),
    "falcon": HeadKind("feature_drafters.falcon:Falcon"),
    "gumiho": HeadKind("feature_drafters.gumiho:Gumiho"),
    "kangaroo": HeadKind("feature_drafters.kangaroo:Kangaroo"),
    "m2r2": HeadKind("feature_drafters.m2r2:M2R2", alone=True),
    "fragments": HeadKind("path_independent.fragments:Fragments"),
    "pass": HeadKind("path_independent.prompt_tokens:PaSS"),
    "ppd": HeadKind("path_independent.prompt_tokens:PPD"),
    "hidden_transfer": HeadKind("path_independent.hidden_transfer:HiddenTransfer"),
    "glide": HeadKind("cross_attention.glide:Glide"),
    "mixture_of_attentions": HeadKind("cross_attention.mixture_of_attentions:MixtureOfAttentions"),
    "dream": HeadKind("cross_attention.dream:Dream"),
    "hydra": HeadKind("recurrent.hydra:Hydra"),
    "hydra_plus": HeadKind("recurrent.hydra:HydraPlus"),
    "mlp_speculator": HeadKind("recurrent.mlp_speculator:MlpSpeculator"),
    "redrafter": HeadKind("recurrent.redrafter:ReDrafter"),
    "clover": HeadKind("recurrent.clover:Clover"),
    "clover2": HeadKind("recurrent.clover2:Clover2"),
    "amphista": HeadKind("path_independent.amphista:Amphista"),
    "blockwise": HeadKind("path_independent.blockwise:Blockwise"),
    "dflash": HeadKind("path_independent.dflash:DFlash"),
    "peagle": HeadKind("path_independent.peagle:PEagle"),
    # what scores
    "reward": HeadKind("scorers.reward:Reward", alone=True),
    "acceptance": HeadKind("scorers.acceptance:Acceptance", alone=True, role="draft", partner="against"),
    "adaeagle": HeadKind("scorers.adaeagle:AdaEagle", alone=True),
    "aligned": HeadKind("scorers.aligned:Aligned", alone=True),
    "autodeco": HeadKind("scorers.autodeco:AutoDeco", alone=True),
    "filter": HeadKind("scorers.filter:Filter", alone=True),
    "judge": HeadKind("scorers.judge:Judge", alone=True),
    "outlook": HeadKind("scorers.outlook:Outlook", alone=True, partner="of"),
    "planner": HeadKind("scorers.planner:Planner", alone=True),
    "ranker": HeadKind("scorers.ranker:Ranker", alone=True),
    "streams": HeadKind("scorers.streams:ParallelStreams", alone=True),
    "lens": HeadKind("scorers.tuned_lens:TunedLens", alone=True),
    "leank": HeadKind("scorers.key_mask:KeyMask", alone=True),
}
