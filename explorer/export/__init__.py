"""Runs as files and as pages, and the page's own files."""
