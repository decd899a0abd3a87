"""Draft heads in published formats: EAGLE 1 to 3, P-EAGLE, DFlash, Hydra, Medusa, MLP speculators, layers in
a target's files; and AutoDeco's heads.
"""

from decoders.models.published.multi_token import has_multi_token, read_multi_token
from decoders.models.published.reading import find_format, is_heads, read_heads, settled

__all__ = ["find_format", "has_multi_token", "is_heads", "read_heads", "read_multi_token", "settled"]
