"""DecoderLens (Langedijk et al., 2023): what the whole, unchanged decoder writes if it looks at a middle
layer of the encoder.
"""

from typing import Any

from decoders.lenses.frame import LensFrame
from decoders.lenses.logit import COLOUR
from decoders.lenses.registry import lens
from decoders.parameters import integer


@lens(
    name="decoder",
    title="DecoderLens",
    papers=("decoderlens",),
    reads="seq2seq",
    parameters=(integer("max_new_tokens", 64, "The longest sentence of the last layer.", low=1, high=256),),
    shows=(COLOUR,),
    figures=("sentences", "grid"),
)
def decoder(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """What an encoder-decoder would write after each layer of its encoder: a sentence per layer.

    1. The source is encoded once; the states after each layer, and the embeddings, are kept.
    2. Each layer's states pass through the encoder's last norm. The decoder attends to them as it would to
       the last ones, and writes greedily, at most eight tokens more than the final sentence has. All layers
       are rows of one batch.
    3. The decoder then reads the final sentence over each layer's states: its log-probability says how close
       a layer is to the last one.
    """
    from decoders.lenses.layer_sentences import decoder_frame

    return decoder_frame(model, tokens, options["max_new_tokens"])
