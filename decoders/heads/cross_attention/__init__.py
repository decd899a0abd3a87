"""Drafters with cross-attention to the target's keys, values or states."""
