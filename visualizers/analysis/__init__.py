"""Numbers folded from traces. Knows events and costs, no marks."""
