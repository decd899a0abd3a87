"""Files that other programs wrote: a reader for each family of dialects, which knows plain data and makes an
`Answer`; the checks of its numbers; and the trace that is written of it.

A new dialect is a reader and a row of the table in dialects.py.
"""
