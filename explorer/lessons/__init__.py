"""Guided lessons: their sentences are made from the run on screen."""
