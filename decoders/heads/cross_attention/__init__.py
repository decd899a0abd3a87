"""Drafters that look at the target's keys, values or states by cross-attention."""
