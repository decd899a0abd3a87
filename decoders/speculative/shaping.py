"""The parameters that shape p and q before anything is drawn or compared, declared once for the family."""

from decoders.registry import Parameter

SHAPING = (
    Parameter("temperature", "float", 0.0, "0 is greedy; above 0 target and draft draw their tokens.",
              low=0.0, high=100.0),
    Parameter("top_k", "int", 0, "Keep the k likeliest tokens of target and draft; 0 keeps all.", low=0),
    Parameter("top_p", "float", 1.0, "Keep the smallest set of likeliest tokens with this mass; 1 keeps all.",
              low=0.0, high=1.0),
)  # fmt: skip
