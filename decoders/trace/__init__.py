"""The record of a lane and its file form. Imports no torch."""

from decoders.trace.trace import Trace, from_json, load

__all__ = ["Trace", "from_json", "load"]
