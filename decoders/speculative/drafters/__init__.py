"""Drafters: where guesses come from, and which shape a draft has."""
