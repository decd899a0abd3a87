"""Strategies whose drafter is a small module trained on the frozen target (decoders/heads)."""
