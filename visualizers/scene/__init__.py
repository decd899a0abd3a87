"""Scenes: marks, the registry of views, and what views share. Knows events, no strategy."""
