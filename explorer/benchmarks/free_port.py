"""A port for an app that a benchmark or a test starts."""

import socket


def free_port() -> int:
    """A port that is free, from those that the system hands out."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
