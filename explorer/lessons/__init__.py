"""Guided lessons: what they say is folded from the run on screen."""
