"""Why are drafted tokens rejected? Runs one or several drafters of one target over many prompts, counts the
rejections by cause, and writes a page.
"""
