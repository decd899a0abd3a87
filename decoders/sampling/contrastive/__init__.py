"""One token at a time from several views that are contrasted."""
