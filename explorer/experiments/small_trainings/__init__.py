"""Experiments that train small models and read what these learned; no strategy decodes."""
