"""The parameters of logits processors, declared once for all strategies that sample.

Names and meanings are those of transformers' `GenerationConfig`; `distributions.processors` builds the
processor stack from them.
"""

from dataclasses import replace

from decoders.constraints.settings import CONSTRAINT
from decoders.logits.processor_order import WARPERS
from decoders.parameters import choice, free_text, integer, real, reals, switch
from decoders.strategy import Part

MORE = "More truncations"
TEXT = "Repetition, words and length"
MODEL_DEFAULTS = switch(
    "model_defaults",
    True,
    "Start from the model's own generation settings, as generate does; off: only what is set here counts.",
    group=TEXT,
)
SPAN_DELIMITERS = free_text(
    "span_delimiters",
    "",
    "What opens and closes reasoning and tool calls, such as reasoning: <think> </think>, tool call: "
    "<tool_call> </tool_call>; empty: these and those of the model's chat template.",
    group=TEXT,
)
SHAPING = (
    real(
        "temperature",
        1.0,
        "Below 1 the distribution is sharper, above 1 flatter; 0 is greedy.",
        low=0.0,
        high=100.0,
    ),
    integer("top_k", 0, "Keep the k most likely tokens; 0 keeps all.", low=0),
    real(
        "top_p",
        1.0,
        "Keep the smallest set of most likely tokens with this mass; 1 keeps all.",
        low=0.0,
        high=1.0,
    ),
    real("min_p", 0.0, "Keep tokens with at least this share of the top probability.", low=0.0, high=1.0),
    real(
        "top_n_sigma",
        0.0,
        "Keep tokens at most this many standard deviations of the scores below the best; 0 keeps all.",
        low=0.0,
        high=100.0,
        group=MORE,
    ),
    real(
        "typical_p",
        1.0,
        "Keep the most typical tokens with this mass; 1 keeps all.",
        low=0.001,
        high=1.0,
        group=MORE,
    ),
    real(
        "top_h",
        0.0,
        "Keep the most likely tokens with this share of the entropy; 0 keeps all.",
        low=0.0,
        high=1.0,
        group=MORE,
    ),
    real(
        "epsilon_cutoff",
        0.0,
        "Remove tokens less likely than this; 0 removes none.",
        low=0.0,
        high=0.999,
        group=MORE,
    ),
    real(
        "eta_cutoff",
        0.0,
        "Remove tokens below a threshold that follows the entropy.",
        low=0.0,
        high=0.999,
        group=MORE,
    ),
    real(
        "xtc_probability",
        0.0,
        "Exclude top choices: with this probability all tokens above xtc_threshold except the least "
        "likely are removed.",
        low=0.0,
        high=1.0,
        group=MORE,
    ),
    real(
        "xtc_threshold",
        0.1,
        "A token with at least this probability is a top choice.",
        low=0.0,
        high=1.0,
        group=MORE,
    ),
    real(
        "repetition_penalty",
        1.0,
        "Above 1, tokens that have occurred become less likely.",
        low=0.01,
        high=100.0,
        group=TEXT,
    ),
    integer(
        "no_repeat_ngram_size", 0, "No n-gram of this size occurs twice; 0 allows it.", low=0, group=TEXT
    ),
    real(
        "dry_multiplier",
        0.0,
        "DRY: penalty for a token that extends a repetition; it grows with the length of the repetition; "
        "0: none.",
        low=0.0,
        high=100.0,
        group=TEXT,
    ),
    real(
        "dry_base",
        1.75,
        "DRY: the factor by which the penalty grows with each repeated token.",
        low=1.0,
        high=10.0,
        group=TEXT,
    ),
    integer(
        "dry_allowed_length",
        2,
        "DRY: a repetition of this many tokens gets exactly the multiplier as penalty.",
        low=1,
        high=50,
        group=TEXT,
    ),
    real(
        "frequency_penalty",
        0.0,
        "Subtracted from a token's score once per occurrence in the new text.",
        low=-2.0,
        high=2.0,
        group=TEXT,
    ),
    real(
        "presence_penalty",
        0.0,
        "Subtracted once from the score of every token that occurs in the new text.",
        low=-2.0,
        high=2.0,
        group=TEXT,
    ),
    integer(
        "thinking_budget",
        0,
        "After this many tokens of reasoning its end is written; 0: no limit.",
        low=0,
        group=TEXT,
    ),
    SPAN_DELIMITERS,
    free_text("bad_words_ids", "", "Words that are never written, such as dog, cat.", group=TEXT),
    free_text(
        "sequence_bias", "", "Words that become more or less likely, such as dog: 3, cat: -2.5.", group=TEXT
    ),
    free_text("suppress_tokens", "", "Single tokens that are never written, such as !, #5.", group=TEXT),
    free_text("begin_suppress_tokens", "", "Single tokens with which the text never begins.", group=TEXT),
    integer(
        "min_length",
        0,
        "The text does not end before it has this many tokens, prompt included.",
        low=0,
        group=TEXT,
    ),
    integer(
        "min_new_tokens", 0, "The text does not end before it has this many new tokens.", low=0, group=TEXT
    ),
    reals(
        "exponential_decay_length_penalty",
        [0.0, 1.0],
        "After this many new tokens, each further token makes the end of the text more likely by this "
        "factor; 1: no change.",
        low=0.0,
        high=1000.0,
        group=TEXT,
    ),
    free_text("forced_bos_token_id", "", "The token that follows a prompt of a single token.", group=TEXT),
    free_text("forced_eos_token_id", "", "The token that is written when the limit is reached.", group=TEXT),
    switch("remove_invalid_values", False, "Replace scores that are NaN or infinite.", group=TEXT),
    real(
        "watermark_bias",
        0.0,
        "Added to the scores of green tokens, so that a reader with the key can detect a watermark; 0: "
        "no watermark.",
        low=0.0,
        high=100.0,
        group=TEXT,
    ),
    real(
        "watermark_ratio", 0.25, "The share of the vocabulary that is green.", low=0.01, high=0.99, group=TEXT
    ),
    integer(
        "watermark_key", 15485863, "The key with which green lists are hashed.", low=1, high=2**31, group=TEXT
    ),
    choice(
        "watermark_scheme",
        "lefthash",
        "What is hashed: the last token, or the last ones and the token itself.",
        ("lefthash", "selfhash"),
        group=TEXT,
    ),
    integer(
        "watermark_context",
        1,
        "How many earlier tokens are needed; selfhash hashes this many.",
        low=1,
        high=8,
        group=TEXT,
    ),
    switch(
        "renormalize_logits", False, "Normalise the processed scores to log-probabilities again.", group=TEXT
    ),
    MODEL_DEFAULTS,
    *CONSTRAINT,
)
# What ends a text, for strategies that write one token after the other, and for beam search.
ENDS = (
    free_text(
        "eos_token_id", "", "Tokens that end the text in place of the model's own, such as #2.", group=TEXT
    ),
    free_text("stop_strings", "", 'Texts at which it stops, such as The end, "\\n\\n".', group=TEXT),
    switch(
        "token_healing",
        False,
        "Remove the prompt's last token and write one that begins with "
        "its text: for prompts that stop inside a word.",
        group=TEXT,
    ),
    integer(
        "max_length", 0, "At most this many tokens, prompt and text together; 0: no limit.", low=0, group=TEXT
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
