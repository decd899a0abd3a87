"""Many positions at once: fixed-point iteration."""
