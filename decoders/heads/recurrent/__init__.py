"""Drafters that read one drafted token after another, starting from the target's newest state."""
