"""The parameters of a constraint, and the names of its kinds.

Declarations alone, without torch, so that a page can list them before any model is loaded; kinds.py makes
constraints of them.
"""

from decoders.constraints import matchers
from decoders.constraints.matchers import WHITE_SPACE
from decoders.parameters import choice, free_text, integer, switch

NAMES = matchers.NAMES | {
    "labels": "list of labels",
    "words": "list of forbidden words",
    "required_words": "list of required words",
    "members": "list of declarations",
}
NONE = "none"
KINDS = (NONE, *NAMES)
ENGINES = ("llguidance", "xgrammar")
GROUP = "Constraint"
MEASURE, TEXTS = "constraint_bias", "constraint_bias_texts"
BIAS = (  # see bias.py
    switch(
        MEASURE,
        False,
        "Measure at every token how far the mask distorts the model's distribution, for the view Bias; its "
        "forwards are lens forwards, counted separately.",
        group=GROUP,
    ),
    integer(
        TEXTS,
        16,
        "For the view Bias: masked texts drawn after each likely token, where the allowed texts are too "
        "many to list.",
        low=2,
        high=256,
        group=GROUP,
    ),
)
CONSTRAINT = (
    choice(
        "constraint",
        NONE,
        "What the text must be: JSON that fits a schema, a match of a regular expression, a sentence of a "
        "grammar, one of several choices, labels from a list, free of some words, not finished before it "
        "has some words, or Python that uses only members that exist.",
        KINDS,
        group=GROUP,
    ),
    free_text(
        "constraint_text",
        "",
        "The schema, expression, grammar, choices, labels, words or declarations. A word is found in any "
        "case, between characters that are not letters, numbers, underscores or accents of any script: dog "
        "occurs in “Dog” and dog's, not in dogs or dogé.",
        group=GROUP,
    ),
    choice(
        "constraint_white_space",
        "compact",
        "White space between the parts of JSON: none, a space after each comma and colon, or any.",
        WHITE_SPACE,
        group=GROUP,
    ),
    choice(
        "constraint_engine",
        "llguidance",
        "Which library checks schemas, expressions and grammars.",
        ENGINES,
        group=GROUP,
    ),
    *BIAS,
)

FAST_FORWARD = switch(
    "constraint_fast_forward",
    False,
    "Where the constraint leaves only one token, write it without a forward of its own; one forward reads "
    "all such tokens.",
    group=GROUP,
)
