"""The sizes of pictures, in pixels, each named once: columns, rows, gaps, letters."""

# Columns, by what a cell of theirs holds. The player narrows columns up to TOKEN where all then fit, which
# would cut a token with a sign beside it (MARKED).
LETTER, SLOT, SHORT, TOKEN, MARKED, WORD, PHRASE = 20, 32, 38, 44, 46, 60, 76

# Rows, by what stands in them: small words, a cell, a box with room, a round, a node with its notes.
LINE, ROW, BOX, TALL, NODE = 20, 24, 28, 36, 44

MARGIN, GAP = 8, 4  # beside a picture without names in its gutter; between panels that belong together

# Panels of one line: a sentence (two lines on a phone), and the tokens of a text.
HEADING, HEADING_NARROW, TOKENS = 20, 36, 28

TINY, SMALL, TEXT, SENTENCE = 10, 11, 12, 13  # letters
