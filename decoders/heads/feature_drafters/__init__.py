"""Drafters that read the state at every token and the drafted path, by attention of their own."""
