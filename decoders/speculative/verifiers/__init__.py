"""Verifiers: which drafted tokens are accepted, and what is drawn if none is."""
