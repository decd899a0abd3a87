"""The record of a lane and its file form. Knows events and numbers; imports no torch."""

from decoders.trace.trace import Trace, from_json, load

__all__ = ["Trace", "from_json", "load"]
