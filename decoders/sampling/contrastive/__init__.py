"""One token at a time from contrasted distributions."""
