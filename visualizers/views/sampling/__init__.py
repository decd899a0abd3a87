"""Views of lanes that write one token at a time."""
