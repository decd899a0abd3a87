"""Which tokens of which request run in which forward, where several requests share one model."""
