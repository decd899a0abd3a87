"""The command `twin`: one text scored by two engines, as a page, a table or a sentence."""
