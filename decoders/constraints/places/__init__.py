"""Where in the typed text of a constraint an output stands. Knows texts, no tokens and no engine: the engine
decides what is allowed, these say where that is written.
"""
