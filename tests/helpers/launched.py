"""Apps of tests, each on a port of its own."""

from typing import Any

from explorer.benchmarks.free_port import free_port


def launched(demo: Any, launch: dict) -> str:
    """Starts an app of a test; returns its address.

    Left to itself, Gradio takes the first free port from 7860. Two tests that start at once then want the
    same one; the app that is late cannot start again, and Gradio tries 100 ports for five seconds each.
    """
    _, address, _ = demo.launch(
        server_name="127.0.0.1", server_port=free_port(), prevent_thread_lock=True, **launch
    )
    return address
