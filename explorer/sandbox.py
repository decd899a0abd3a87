"""Runs Python that a model wrote, each program in a process of its own: no files, no network, no other
processes, bounded time and memory. What it does can only fail its own answer. Knows nothing of tasks.

One small server (sandbox_server.py) forks a process for each program, which takes its limits from the kernel
before it runs it; an audit hook refuses what reaches outside. It needs a system with such limits: Linux, or
macOS, where memory is not bounded.
"""

import importlib.util
import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).with_name("sandbox_server.py")
CPU_SECONDS, WALL_SECONDS, MEGABYTES = 1, 10, 256


@dataclass(frozen=True)
class Ran:
    """What a program gave: the `repr` of each call's value, and the sentence why it failed, if it did; then
    the calls before the failure are there, or none if it had to be stopped.
    """

    values: list[str]
    failed: str | None = None


_lock = threading.Lock()
_servers: list[subprocess.Popen] = []  # the one that runs, if any; it ends with this process


def _ask(line: str) -> str:
    """The server's answer; a server is started where none runs."""
    with _lock:
        if _servers and _servers[0].poll() is not None:
            _servers.clear()
        if not _servers:
            command = [sys.executable, "-I", "-S", str(SERVER)]
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            _servers.append(
                subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, text=True, env={})
            )
        _servers[0].stdin.write(line + "\n")
        _servers[0].stdin.flush()
        return _servers[0].stdout.readline()


def call(source: str, name: str, calls: list[tuple]) -> Ran:
    """Runs `source`, then the function `name` that it defines with each of `calls`, arguments of which are
    numbers, texts, and lists of such.

    Raises ValueError with one sentence on a system that cannot bound a process.
    """
    if importlib.util.find_spec("resource") is None:
        raise ValueError("Python that a model wrote runs on Linux and macOS only: others cannot bound it.")
    asked = {"source": source, "name": name, "calls": calls}
    bounds = {"seconds": CPU_SECONDS, "wall": WALL_SECONDS, "megabytes": MEGABYTES}
    return Ran(**json.loads(_ask(json.dumps(asked | bounds))))
