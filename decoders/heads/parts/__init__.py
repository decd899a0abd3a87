"""Shared by all heads: their base class, layers, and what they read from the target."""
