"""Experiments that decode the same prompts or problems under several settings: each declares a `SWEEP`."""
