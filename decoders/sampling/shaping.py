"""The parameters that shape a row before a token is drawn, declared once for every strategy that draws.

Names and meaning are transformers' `GenerationConfig`; `distributions.processors` makes its processor stack
of them.
"""

from dataclasses import replace

from decoders.registry import Parameter, Part

MORE = "More truncations"
TEXT = "Repetition, words and length"
SHAPING = (
    Parameter("temperature", "float", 1.0, "Below 1 sharper, above 1 flatter; 0 is greedy.",
              low=0.0, high=100.0),
    Parameter("top_k", "int", 0, "Keep the k likeliest tokens; 0 keeps all.", low=0),
    Parameter("top_p", "float", 1.0, "Keep the fewest likeliest tokens with this mass; 1 keeps all.",
              low=0.0, high=1.0),
    Parameter("min_p", "float", 0.0, "Keep tokens with at least this share of the top probability.",
              low=0.0, high=1.0),
    Parameter("typical_p", "float", 1.0, "Keep the most typical tokens with this mass; 1 keeps all.",
              low=0.001, high=1.0, group=MORE),
    Parameter("top_h", "float", 0.0, "Keep the likeliest tokens with this share of the entropy; 0 keeps all.",
              low=0.0, high=1.0, group=MORE),
    Parameter("epsilon_cutoff", "float", 0.0, "Remove tokens less likely than this; 0 removes none.",
              low=0.0, high=0.999, group=MORE),
    Parameter("eta_cutoff", "float", 0.0, "Remove tokens below a threshold that follows the entropy.",
              low=0.0, high=0.999, group=MORE),
    Parameter("repetition_penalty", "float", 1.0, "Above 1: tokens that occurred are less likely.",
              low=0.01, high=100.0, group=TEXT),
    Parameter("no_repeat_ngram_size", "int", 0, "No n-gram of this size occurs twice; 0 allows it.",
              low=0, group=TEXT),
    Parameter("bad_words_ids", "text", "", "Words that are never written, such as dog, cat.", group=TEXT),
    Parameter("sequence_bias", "text", "", "Words made likelier or less likely, such as dog: 3, cat: -2.5.",
              group=TEXT),
    Parameter("suppress_tokens", "text", "", "Single tokens that are never written, such as !, #5.",
              group=TEXT),
    Parameter("begin_suppress_tokens", "text", "", "Single tokens with which the text never begins.",
              group=TEXT),
    Parameter("min_new_tokens", "int", 0, "The text does not end before it has so many new tokens.",
              low=0, group=TEXT),
    Parameter("exponential_decay_length_penalty", "floats", [0.0, 1.0],
              "From so many new tokens on, the end gets likelier by this factor a token; 1: it does not.",
              low=0.0, high=1000.0, group=TEXT),
)  # fmt: skip
GREEDY = (replace(SHAPING[0], default=0.0), *SHAPING[1:])  # the same, greedy unless a temperature is given

PROCESSORS = Part(
    "processors",
    "logits processors",
    "Reshape the model's scores before a token is drawn: temperature, truncations and penalties, in the "
    "order in which transformers runs them. Those left at their defaults change nothing.",
)
