"""Runs Python that a model wrote, which a visitor may have chosen word by word. Three walls stand in a
row, none of which trusts another:

1. language.py reads the program: only a small language is let through.
2. process.py starts a process for it, fresh and empty, in which nothing of this one is.
3. kernel.py has the kernel hold that process: no files, no network, no processes; bounded time and memory.

Where the third cannot be had no program is run, unless whoever starts the app says --run-code. Knows
nothing of tasks. What the walls do not keep: a program can give a wrong answer on purpose, which is its
own affair.
"""

import importlib.util
import threading
from dataclasses import dataclass
from functools import cache

from explorer.tasks.sandbox import process
from explorer.tasks.sandbox.language import refusal
from explorer.tasks.sandbox.process import Ran

__all__ = ["Protection", "Ran", "allow_unsealed", "call", "protection"]

LAYERS = {
    "seccomp": "seccomp",
    "landlock": "Landlock",
    "namespaces": "namespaces",
    "user": "a user without rights",
}
# Each asks the kernel for one thing that it must not give.
PROBES = ("open('/')", "_socket.socket()", "os.fork()")
# What an honest program does: it computes, fails, and needs more memory than there is.
HONEST = """
def f(n):
    try:
        bytearray(10 ** 10)
    except MemoryError:
        return sum(len(str(i)) for i in range(n))
"""

BOUNDLESS = "Programs that a model writes run on Linux and macOS only: others cannot bound them."

_alone = threading.Lock()  # one program at a time, so that memory is bounded for all of them together
_unsealed_too: list[bool] = []


@dataclass(frozen=True)
class Protection:
    """What this system holds a program with. `runs`: whether programs are run at all; `sentence` says it."""

    sealed: bool
    runs: bool
    layers: tuple[str, ...]
    sentence: str


def allow_unsealed() -> None:
    """From now on programs run where the kernel cannot wall them in, too: who starts the app asked for it."""
    _unsealed_too[:] = [True]


def protection() -> Protection:
    """What is on here, found out by trying. The first call takes some tenths of a second."""
    if importlib.util.find_spec("resource") is None:
        return Protection(False, False, (), BOUNDLESS)
    layers = tried()
    named = [word for layer, word in LAYERS.items() if layer in layers]
    if "seccomp" in layers:
        sentence = (
            "Programs that a model writes run in a process of their own; the kernel "
            f"({', '.join(named)}) lets them open no file, no connection and no process."
        )
        return Protection(True, True, layers, sentence)
    if _unsealed_too:
        sentence = (
            "Programs that a model writes are run, as --run-code asks, although this system cannot wall them "
            "in: only their language, their time and their memory are bounded."
        )
        return Protection(False, True, layers, sentence)
    sentence = (
        "Programs that a model writes are not run: this system cannot wall them in. Start the app with "
        "--run-code to run them all the same."
    )
    return Protection(False, False, layers, sentence)


@cache
def tried() -> tuple[str, ...]:
    """The layers that hold, seccomp only where an honest program runs and none of the probes gets through."""
    for _ in range(3):  # on a machine that is very busy an honest program may be too slow
        result = tried_once()
        if "seccomp" in result:
            break
    return tuple(sorted(result))


def tried_once() -> frozenset[str]:
    """The same, tried but once."""
    try:
        cell = process.ready()
    except (ValueError, OSError):  # here no process can be started at all
        return frozenset()
    honest = process.run_in(cell, asked(HONEST, "f", [(100,)]))
    if cell.sealed and honest.values == ["190"] and all(map(refused, PROBES)):
        return cell.held
    return cell.held - {"seccomp"}


def refused(probe: str) -> bool:
    """Whether the kernel refuses this to a process, nothing in Python hindering it."""
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
    """Runs `source`, then the function `name` that it defines with each of `calls`, arguments of which are
    numbers, texts, and lists of such.

    Takes at most about two seconds. Raises ValueError with one sentence on a system that cannot wall it in.
    """
    if not protection().runs:
        raise ValueError(protection().sentence)
    if problem := refusal(source):
        return Ran([], problem)
    with _alone:
        cell = process.ready()
        process.prepare()
        if not (cell.sealed or _unsealed_too):
            process.end(cell)
            raise ValueError("The wall around a program is gone; restart the app.")
        return process.run_in(cell, asked(source, name, calls))
