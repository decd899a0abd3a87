"""Experiments in which nothing is decoded: what models hold is read, counted or calculated."""
