"""Sentences that say why a lane ended, shared by several files. Knows nothing."""

NOTHING_FOLLOWS = "The text is one that the constraint allows, and nothing may follow it."
END_OF_TEXT = "The model wrote its end-of-text token."
WHOLE = (NOTHING_FOLLOWS, END_OF_TEXT)  # a constraint allows neither before the text is whole
