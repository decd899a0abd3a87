"""Heads that draft nothing: they score, judge, choose and probe what stands in the target's states."""
