"""Tests that drive the page. A package to pytest too, so that its fixtures end with its last test."""
