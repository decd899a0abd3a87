"""Several texts that are drafted and verified together."""
