"""Drafters that do not see the drafted path: one distribution per depth, the same on every branch."""
