"""Drafting and verifying at the same time."""
