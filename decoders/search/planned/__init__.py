"""Searches that plan first: by topics, by units of a source, or from their end."""
