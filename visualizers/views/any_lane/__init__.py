"""Views of any lane, whatever its strategy."""
