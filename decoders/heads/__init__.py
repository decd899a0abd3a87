"""Draft heads: small trained modules beside a frozen target. One class a file; `KINDS` names those that files
may hold. See docs/heads.md.
"""

from decoders.heads.eagle import Eagle
from decoders.heads.kangaroo import Kangaroo
from decoders.heads.layers import Entries
from decoders.heads.medusa import Medusa
from decoders.heads.module import DraftModule
from decoders.heads.taps import Taps, Target, take_taps

__all__ = ["KINDS", "DraftModule", "Eagle", "Entries", "Kangaroo", "Medusa", "Taps", "Target", "take_taps"]

KINDS: dict[str, type[DraftModule]] = {module.kind: module for module in (Medusa, Eagle, Kangaroo)}
