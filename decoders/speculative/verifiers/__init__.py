"""Verifiers: which drafted tokens stay, and what is drawn where none does."""
