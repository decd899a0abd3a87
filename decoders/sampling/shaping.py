"""The parameters that shape a row before a token is drawn, declared once for every strategy that draws.

Names and meaning are transformers' `GenerationConfig`; `distributions.processors` makes its processor stack
of them.
"""

from dataclasses import replace

from decoders.registry import Parameter, Part

SHAPING = (
    Parameter("temperature", "float", 1.0, "Below 1 sharper, above 1 flatter; 0 is greedy.",
              low=0.0, high=100.0),
    Parameter("top_k", "int", 0, "Keep the k likeliest tokens; 0 keeps all.", low=0),
    Parameter("top_p", "float", 1.0, "Keep the fewest likeliest tokens with this mass; 1 keeps all.",
              low=0.0, high=1.0),
    Parameter("min_p", "float", 0.0, "Keep tokens with at least this share of the top probability.",
              low=0.0, high=1.0),
    Parameter("typical_p", "float", 1.0, "Keep the most typical tokens with this mass; 1 keeps all.",
              low=0.001, high=1.0),
    Parameter("epsilon_cutoff", "float", 0.0, "Remove tokens less likely than this; 0 removes none.",
              low=0.0, high=0.999),
    Parameter("eta_cutoff", "float", 0.0, "Remove tokens below a threshold that follows the entropy.",
              low=0.0, high=0.999),
    Parameter("repetition_penalty", "float", 1.0, "Above 1: tokens that occurred are less likely.",
              low=0.01, high=100.0),
    Parameter("no_repeat_ngram_size", "int", 0, "No n-gram of this size occurs twice; 0 allows it.", low=0),
)  # fmt: skip
GREEDY = (replace(SHAPING[0], default=0.0), *SHAPING[1:])  # the same, greedy unless a temperature is given

PROCESSORS = Part(
    "processors",
    "logits processors",
    "Reshape the model's scores before a token is drawn: temperature, truncations and penalties, in the "
    "order in which transformers runs them. Those left at their defaults change nothing.",
)
