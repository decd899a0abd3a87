"""Drafters that read a state at every token and the drafted path, with attention of their own."""
