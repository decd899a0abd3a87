"""Drafts by some of the target's own layers."""
