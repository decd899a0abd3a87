"""Strategies whose drafter is a small module trained beside the frozen target (decoders/heads)."""
