"""Best-first searches: the most promising open text goes first."""
