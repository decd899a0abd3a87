"""Why are drafted tokens rejected? Many prompts, one target, one or several drafters: measured, split by
cause, and written as a page. Knows models, lanes and figures.
"""
