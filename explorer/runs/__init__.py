"""Runs: which lanes decode, and when. Knows lanes, models and traces, no HTML."""
