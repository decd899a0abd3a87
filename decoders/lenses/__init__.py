"""Lenses: what a model makes of a text inside, layer by layer. They choose no token; whoever asks for one
pays a forward of its own. Knows models and tokens, no strategy and no picture.
"""
