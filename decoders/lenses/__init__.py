"""Lenses: what happens inside a model while it reads a text, layer by layer. They choose no token; each costs
a forward of its own.
"""
