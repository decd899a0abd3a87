"""Heads that draft nothing: they score, judge, choose or probe, from the target's states."""
