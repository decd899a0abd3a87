"""Speed, measured: each figure a ratio of two things in one run."""
