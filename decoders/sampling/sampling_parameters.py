"""The parameters of logits processors, declared once for all strategies that sample.

Names and meanings are those of transformers' `GenerationConfig`; `distributions.processors` builds the
processor stack from them.
"""

from dataclasses import replace

from decoders.constraints.settings import CONSTRAINT
from decoders.logits.processor_order import WARPERS
from decoders.strategy import Parameter, Part

MORE = "More truncations"
TEXT = "Repetition, words and length"
MODEL_DEFAULTS = Parameter(
    "model_defaults",
    "bool",
    True,
    "Start from the model's own generation settings, as generate does; off: only what is set here counts.",
    group=TEXT,
)
SHAPING = (
    Parameter(
        "temperature", "float", 1.0, "Below 1 sharper, above 1 flatter; 0 is greedy.", low=0.0, high=100.0
    ),
    Parameter("top_k", "int", 0, "Keep the k most likely tokens; 0 keeps all.", low=0),
    Parameter(
        "top_p",
        "float",
        1.0,
        "Keep the smallest set of most likely tokens with this mass; 1 keeps all.",
        low=0.0,
        high=1.0,
    ),
    Parameter(
        "min_p",
        "float",
        0.0,
        "Keep tokens with at least this share of the top probability.",
        low=0.0,
        high=1.0,
    ),
    Parameter(
        "top_n_sigma",
        "float",
        0.0,
        "Keep tokens at most this many standard deviations of the scores below the best; 0 keeps all.",
        low=0.0,
        high=100.0,
        group=MORE,
    ),
    Parameter(
        "typical_p",
        "float",
        1.0,
        "Keep the most typical tokens with this mass; 1 keeps all.",
        low=0.001,
        high=1.0,
        group=MORE,
    ),
    Parameter(
        "top_h",
        "float",
        0.0,
        "Keep the most likely tokens with this share of the entropy; 0 keeps all.",
        low=0.0,
        high=1.0,
        group=MORE,
    ),
    Parameter(
        "epsilon_cutoff",
        "float",
        0.0,
        "Remove tokens less likely than this; 0 removes none.",
        low=0.0,
        high=0.999,
        group=MORE,
    ),
    Parameter(
        "eta_cutoff",
        "float",
        0.0,
        "Remove tokens below a threshold that follows the entropy.",
        low=0.0,
        high=0.999,
        group=MORE,
    ),
    Parameter(
        "xtc_probability",
        "float",
        0.0,
        "Exclude top choices: with this probability all tokens above xtc_threshold except the least "
        "likely are removed.",
        low=0.0,
        high=1.0,
        group=MORE,
    ),
    Parameter(
        "xtc_threshold",
        "float",
        0.1,
        "A token with at least this probability is a top choice.",
        low=0.0,
        high=1.0,
        group=MORE,
    ),
    Parameter(
        "repetition_penalty",
        "float",
        1.0,
        "Above 1, tokens that have occurred become less likely.",
        low=0.01,
        high=100.0,
        group=TEXT,
    ),
    Parameter(
        "no_repeat_ngram_size",
        "int",
        0,
        "No n-gram of this size occurs twice; 0 allows it.",
        low=0,
        group=TEXT,
    ),
    Parameter(
        "dry_multiplier",
        "float",
        0.0,
        "DRY: penalty for a token that extends a repetition; it grows with the length of the repetition; "
        "0: none.",
        low=0.0,
        high=100.0,
        group=TEXT,
    ),
    Parameter(
        "dry_base",
        "float",
        1.75,
        "DRY: the factor by which the penalty grows with each repeated token.",
        low=1.0,
        high=10.0,
        group=TEXT,
    ),
    Parameter(
        "dry_allowed_length",
        "int",
        2,
        "DRY: a repetition of this many tokens gets exactly the multiplier as penalty.",
        low=1,
        high=50,
        group=TEXT,
    ),
    Parameter("bad_words_ids", "text", "", "Words that are never written, such as dog, cat.", group=TEXT),
    Parameter(
        "sequence_bias",
        "text",
        "",
        "Words that become more or less likely, such as dog: 3, cat: -2.5.",
        group=TEXT,
    ),
    Parameter(
        "suppress_tokens", "text", "", "Single tokens that are never written, such as !, #5.", group=TEXT
    ),
    Parameter(
        "begin_suppress_tokens", "text", "", "Single tokens with which the text never begins.", group=TEXT
    ),
    Parameter(
        "min_length",
        "int",
        0,
        "The text does not end before it has this many tokens, prompt included.",
        low=0,
        group=TEXT,
    ),
    Parameter(
        "min_new_tokens",
        "int",
        0,
        "The text does not end before it has this many new tokens.",
        low=0,
        group=TEXT,
    ),
    Parameter(
        "exponential_decay_length_penalty",
        "floats",
        [0.0, 1.0],
        "After this many new tokens, each further token makes the end of the text more likely by this "
        "factor; 1: no change.",
        low=0.0,
        high=1000.0,
        group=TEXT,
    ),
    Parameter(
        "forced_bos_token_id", "text", "", "The token that follows a prompt of a single token.", group=TEXT
    ),
    Parameter(
        "forced_eos_token_id", "text", "", "The token that is written when the limit is reached.", group=TEXT
    ),
    Parameter("remove_invalid_values", "bool", False, "Replace scores that are NaN or infinite.", group=TEXT),
    Parameter(
        "watermark_bias",
        "float",
        0.0,
        "Added to the scores of green tokens, so that a reader with the key can detect a watermark; 0: "
        "no watermark.",
        low=0.0,
        high=100.0,
        group=TEXT,
    ),
    Parameter(
        "watermark_ratio",
        "float",
        0.25,
        "The share of the vocabulary that is green.",
        low=0.01,
        high=0.99,
        group=TEXT,
    ),
    Parameter(
        "watermark_key",
        "int",
        15485863,
        "The key with which green lists are hashed.",
        low=1,
        high=2**31,
        group=TEXT,
    ),
    Parameter(
        "watermark_scheme",
        "choice",
        "lefthash",
        "What is hashed: the last token, or the last ones and the token itself.",
        choices=("lefthash", "selfhash"),
        group=TEXT,
    ),
    Parameter(
        "watermark_context",
        "int",
        1,
        "How many earlier tokens are needed; selfhash hashes this many.",
        low=1,
        high=8,
        group=TEXT,
    ),
    Parameter(
        "renormalize_logits",
        "bool",
        False,
        "Normalise the processed scores to log-probabilities again.",
        group=TEXT,
    ),
    MODEL_DEFAULTS,
    *CONSTRAINT,
)
# What ends a text, for strategies that write one token after the other, and for beam search.
ENDS = (
    Parameter(
        "eos_token_id",
        "text",
        "",
        "Tokens that end the text in place of the model's own, such as #2.",
        group=TEXT,
    ),
    Parameter("stop_strings", "text", "", 'Texts at which it stops, such as The end, "\\n\\n".', group=TEXT),
    Parameter(
        "token_healing",
        "bool",
        False,
        "Remove the prompt's last token and write one that begins with "
        "its text: for prompts that stop inside a word.",
        group=TEXT,
    ),
    Parameter(
        "max_length",
        "int",
        0,
        "At most this many tokens, prompt and text together; 0: no limit.",
        low=0,
        group=TEXT,
    ),
)
GREEDY = (replace(SHAPING[0], default=0.0), *SHAPING[1:], *ENDS)  # greedy unless a temperature is given

DRAWN = (*WARPERS, "xtc_threshold")
# Those that `generate` also runs without do_sample: for strategies that take the most likely tokens.
PENALTIES = tuple(parameter for parameter in SHAPING if parameter.name not in DRAWN)

PROCESSORS = Part(
    "processors",
    "logits processors",
    "Reshape the model's scores before a token is drawn: temperature, truncations and penalties, in the "
    "order in which transformers runs them. Those at their defaults change nothing.",
)
