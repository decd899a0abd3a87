"""Offline edits: functions that take a model and return an ordinary one with pruned or quantised weights, or
fewer layers. `edited_names.py` parses the edits in a model's name, `edited_model.py` applies them.
"""
