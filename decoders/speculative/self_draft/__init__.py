"""Drafts by a part of the target's own layers."""
