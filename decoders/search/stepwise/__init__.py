"""Searches over whole steps: sentences, lines or blocks, weighed before they stay."""
