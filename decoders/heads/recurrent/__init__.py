"""Drafters that take in one drafted token after the other, beside the target's newest state."""
