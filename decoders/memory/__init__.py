"""Which keys and values of a text are kept, one policy per file."""
