"""Offline edits: functions that take a model and give a normal one whose weights or layers are fewer or
coarser. Which edits a model name asks for is read in `edited_names.py`, and made in `edited_model.py`.
"""
