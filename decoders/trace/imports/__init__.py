"""Reads files of other programs: a reader for each family of dialects makes an `Answer`, plain data, whose
numbers are checked and which becomes a trace.

A new dialect is a reader and a row of the table in dialects.py.
"""
