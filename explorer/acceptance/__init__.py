"""Why are drafted tokens rejected? Measures one target and one or several drafters over many prompts, splits
the rejections by cause, and writes a page. Knows models, lanes and figures.
"""
