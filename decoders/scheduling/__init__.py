"""Schedules: which tokens of each request run in which forward, where several requests share one model."""
