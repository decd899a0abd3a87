"""Many positions at once: fixed-point iteration, and several streams."""
