"""What the shipped models can do, measured on held-out texts."""
