"""Numbers folded from traces."""
