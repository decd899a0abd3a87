"""Runs: which lanes decode, and when. Knows lanes, models and traces, no HTML."""

MAX_LANES = 4  # of a run
