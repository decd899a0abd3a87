"""Decoding strategies, the engine that scores token trees, and their traces. No gradio, no plotly."""
