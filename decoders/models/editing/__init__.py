"""Offline edits: functions that take a model and return a normal one with fewer or coarser weights or layers.
Which edits a model name asks for is read in `edited_names.py`, and made in `edited_model.py`.
"""
