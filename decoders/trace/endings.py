"""Sentences that say why a lane ended, shared by several files."""

NOTHING_FOLLOWS = "The text is one that the constraint allows, and nothing may follow it."
END_OF_TEXT = "The model wrote its end-of-text token."
WHOLE = (NOTHING_FOLLOWS, END_OF_TEXT)  # endings that a constraint allows only for a complete text
