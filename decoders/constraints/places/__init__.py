"""The position of an output in the text of a constraint. The engine decides what is allowed; these say where
that is written.
"""
