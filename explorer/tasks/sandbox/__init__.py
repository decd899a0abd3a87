"""Runs Python that a model wrote, whose every word a visitor may have chosen. Three independent layers
protect the machine:

1. language.py parses the program and accepts only a small language.
2. process.py starts a fresh, empty process for it, which shares nothing with this one.
3. kernel.py lets the kernel confine that process: no files, no network, no processes; time and memory are
   bounded.

Without the third layer no program is run, unless the app was started with --run-code. Not covered: a program
can return a wrong answer on purpose.
"""

import importlib.util
import os
import threading
from dataclasses import dataclass
from functools import cache

from decoders.refusal import Refusal
from explorer.tasks.sandbox import process
from explorer.tasks.sandbox.language import refusal
from explorer.tasks.sandbox.process import Ran

__all__ = ["Protection", "Ran", "allow_unsealed", "call", "protection"]

LAYERS = {
    "seccomp": "seccomp",
    "landlock": "Landlock",
    "namespaces": "namespaces",
    "root": "a root without files",
    "user": "a user without rights",
}
# Each probe requests one thing that the kernel must refuse.
PROBES = ("open('/')", "_socket.socket()", "os.fork()")
# An honest program, which computes, handles an error, and asks for more memory than there is.
HONEST = """
def f(n):
    try:
        bytearray(10 ** 10)
    except MemoryError:
        return sum(len(str(i)) for i in range(n))
"""

BOUNDLESS = "Programs that a model writes run only on Linux and macOS: other systems cannot bound them."

# Programs of all visitors together take at most half of the processors, and 256 MB each.
AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))
_room = threading.BoundedSemaphore(AT_ONCE)
_unsealed_too: list[bool] = []


@dataclass(frozen=True)
class Protection:
    """How this system confines a program. `runs`: whether programs are run at all; `sentence` explains it."""

    sealed: bool
    runs: bool
    layers: tuple[str, ...]
    sentence: str


def allow_unsealed() -> None:
    """Lets programs run although the kernel cannot confine them, as --run-code requests."""
    _unsealed_too[:] = [True]


def protection() -> Protection:
    """The protection on this system, found by probing it; the first call takes some tenths of a second."""
    if importlib.util.find_spec("resource") is None:
        return Protection(False, False, (), BOUNDLESS)
    layers = tried()
    named = [word for layer, word in LAYERS.items() if layer in layers]
    if "seccomp" in layers:
        sentence = (
            "Programs that a model writes run in a separate process; the kernel "
            f"({', '.join(named)}) lets them open no file, no connection and no process."
        )
        return Protection(True, True, layers, sentence)
    if _unsealed_too:
        sentence = (
            "Programs that a model writes are run, as --run-code requests, although this system cannot "
            "isolate them: only their language, their time and their memory are bounded."
        )
        return Protection(False, True, layers, sentence)
    sentence = (
        "Programs that a model writes are not run: this system cannot isolate them. Start the app with "
        "--run-code to run them anyway."
    )
    return Protection(False, False, layers, sentence)


@cache
def tried() -> tuple[str, ...]:
    """The layers that work; seccomp only if an honest program runs and every probe is refused."""
    for _ in range(3):  # on a very busy machine an honest program may time out
        result = tried_once()
        if "seccomp" in result:
            break
    return tuple(sorted(result))


def tried_once() -> frozenset[str]:
    """The layers that work, by a single attempt."""
    try:
        cell = process.ready()
    except (ValueError, OSError):  # no process can be started here
        return frozenset()
    honest = process.run_in(cell, asked(HONEST, "f", [(100,)]))
    if cell.sealed and honest.values == ["190"] and all(map(refused, PROBES)):
        return cell.held
    return cell.held - {"seccomp"}


def refused(probe: str) -> bool:
    """Whether the kernel refuses this statement in a process in which nothing in Python prevents it."""
    cell = process.start(("_socket",))
    if not process.settle(cell):
        process.end(cell)
        return False
    ran = process.run_in(cell, asked(f"import os, _socket\ndef f(): {probe}", "f", [()]) | {"whole": True})
    return ran.failed in (process.STOPPED, "It fails with PermissionError.")


def asked(source: str, name: str, calls: list[tuple]) -> dict:
    """The message to a process."""
    return {"source": source, "name": name, "calls": calls, "whole": False}


def call(source: str, name: str, calls: list[tuple]) -> Ran:
    """Runs `source`, and then the function `name` that it defines with each of `calls`, whose arguments are
    numbers, texts, and lists of these.

    Takes at most about two seconds. Raises Refusal with one sentence on a system that cannot confine it.
    """
    if not protection().runs:
        raise Refusal(protection().sentence)
    if problem := refusal(source):
        return Ran([], problem)
    with _room:
        cell = process.ready()
        process.prepare()
        if not (cell.sealed or _unsealed_too):
            process.end(cell)
            raise Refusal("The sandbox no longer works; restart the app.")
        return process.run_in(cell, asked(source, name, calls))
