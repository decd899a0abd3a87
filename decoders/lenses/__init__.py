"""Lenses: what a model makes of a text inside, layer by layer. They choose no token; each costs a forward of
its own. Knows models and tokens, no strategy and no picture.
"""
