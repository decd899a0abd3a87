"""Beam searches: several texts that grow one token at a time."""
