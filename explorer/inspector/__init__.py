"""What a trace knows about one token, for the inspector."""
