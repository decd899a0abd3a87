"""Decoding strategies, the engine that scores token trees, and the traces they leave. No gradio, no plotly."""
