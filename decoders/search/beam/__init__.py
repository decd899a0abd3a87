"""Beam searches: several texts that grow a token at a time."""
