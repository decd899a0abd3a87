"""The Gradio page: its layout, its files, and a file for each tab or set of calls."""
