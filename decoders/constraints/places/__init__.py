"""The position of an output in the text of a constraint. Knows texts, no tokens and no engine: the engine
decides what is allowed, these say where that is written.
"""
