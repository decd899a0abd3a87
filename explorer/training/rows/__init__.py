"""Recipes that differ only in data: a row per model, a file per family."""
