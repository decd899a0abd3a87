"""llama-tiny-lookahead-heads: modules that draft inside the frozen llama-tiny's own forward (PaSS, PPD,
hidden transfer) or read it by cross-attention (GliDe, Mixture of Attentions, DREAM's text part), trained half
on stories and tasks, half on text that the target wrote itself at temperature 1.
"""

from argparse import Namespace

from decoders.heads import PPD, Dream, Glide, HiddenTransfer, MixtureOfAttentions, PaSS
from explorer.training.recipes.llama_tiny_heads import train

NAME = "llama-tiny-lookahead-heads"
MILLION_TOKENS = 0.4  # seven minutes on one core
BATCH, LENGTH = 8, 128  # short rows and few of them: many small steps
VALIDATION_ROWS = 32


def main(args: Namespace) -> None:
    """Trains and ships all six."""
    kinds = (PaSS, PPD, HiddenTransfer, Glide, MixtureOfAttentions, Dream)
    sizes = {"batch": BATCH, "length": LENGTH, "validation_rows": VALIDATION_ROWS, "eight_bits": True}
    train(args, NAME, MILLION_TOKENS, lambda shared: [kind(shared) for kind in kinds], **sizes)
