"""Benchmarks of speed and memory; most results are ratios of two things measured in one run."""
