"""Views of canvases: text that appears out of order."""
