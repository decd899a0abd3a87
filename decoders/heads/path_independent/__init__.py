"""Drafters with one distribution for each depth, the same on every branch: none sees the drafted path."""
