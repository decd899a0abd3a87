"""Searches over whole steps: sentences, lines or blocks, scored before they are kept."""
