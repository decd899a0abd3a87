"""Draft and verify: drafters, verifiers and the round that joins them."""
