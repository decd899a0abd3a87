"""What a trace knows of one token, for the inspector."""
