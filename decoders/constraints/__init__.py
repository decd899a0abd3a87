"""Constraints: which texts are allowed, as masks over the next token."""
