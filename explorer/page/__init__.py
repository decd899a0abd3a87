"""The Gradio page: its layout, the files it serves, and one module per tab or group of server functions."""
