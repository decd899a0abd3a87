"""Heads that do not draft: they score, judge, choose or probe from the target's states."""
