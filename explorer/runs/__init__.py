"""Who decodes what, and when. Knows lanes, models and traces, no HTML."""
