"""Runs: which lanes decode, and when."""

MAX_LANES = 4  # of a run
