"""The position of an output in the text of a constraint. The engine decides what is allowed; these files find
the part of the text that says so.
"""
