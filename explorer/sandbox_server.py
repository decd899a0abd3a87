"""The server behind sandbox.py: a line of JSON in, a process for the program in it, a line of JSON out.

It is started as a file of its own and imports nothing of this project, so that a fork of it is small.
"""

import collections
import functools
import itertools
import json
import math
import os
import resource
import select
import signal
import sys
import time

LOADED = (collections, functools, itertools, math)  # what a program may import
HARMLESS = {"compile", "exec", "builtins.id", "object.__getattr__", "sys._getframe"}  # audit events
NOBODY = 65534
LONGEST, MOST = 10_000, 1_000_000  # characters of a value, bytes of an answer


def limit(seconds: int, megabytes: int) -> None:
    """Gives up what rights there are, then time, memory, files and processes. Open streams stay."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)  # the limit on processes does not hold for root
    bounds = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_NOFILE: 3,  # no further file and no socket can be opened
    }
    for what, most in bounds.items():
        resource.setrlimit(what, (most, most))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def guard(event: str, arguments: tuple) -> None:
    """Audit hook: whatever is not harmless is refused, imports of further modules too."""
    if event not in HARMLESS:
        what = arguments[0] if event == "import" else event
        raise PermissionError(f"It reaches for {what}, which is not allowed.")


def run(asked: dict) -> dict:
    """{values, failed} of a program, see sandbox.Ran."""
    values, space = [], {"__name__": "answer"}
    try:
        exec(compile(asked["source"], "answer", "exec"), space)
        function = space.get(asked["name"])
        if function is None:
            return {"values": [], "failed": f"It defines no {asked['name']}."}
        for arguments in asked["calls"]:
            values.append(repr(function(*arguments))[:LONGEST])
    except PermissionError as error:
        return {"values": values, "failed": str(error)[:200]}
    except SyntaxError:
        return {"values": values, "failed": "It is no Python."}
    except BaseException as error:  # a program may raise anything, SystemExit too
        return {"values": values, "failed": f"It fails with {type(error).__name__}."}
    return {"values": values, "failed": None}


def serve_one(asked: dict, answer: int) -> None:
    """In the new process: shuts itself in, runs the program, and writes what it gave to the pipe `answer`."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream, place in enumerate((nowhere, answer, nowhere)):
        os.dup2(place, stream)
    os.closerange(3, 256)
    write, dumps, leave = os.write, json.dumps, os._exit
    limit(asked["seconds"], asked["megabytes"])
    sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None
    for name in set(sys.modules) - {module.__name__ for module in LOADED} - {"builtins"}:
        del sys.modules[name]
    sys.addaudithook(guard)
    write(1, dumps(run(asked)).encode())
    leave(0)


def heard(pipe: int, seconds: float) -> bytes:
    """What comes out of a pipe until it ends, says too much, or so many seconds have gone by."""
    said, until = b"", time.monotonic() + seconds
    while len(said) < MOST and select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        more = os.read(pipe, 1 << 16)
        if not more:
            break
        said += more
    return said


def stopped(status: int, seconds: int) -> dict:
    """The answer for a process that ended without one."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU):
        return {"values": [], "failed": f"It was stopped: it may compute for {seconds} s."}
    return {"values": [], "failed": "It ended its process before it gave an answer."}


def answered(asked: dict) -> dict:
    """{values, failed} of a program, run in a new process that is gone afterwards."""
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            serve_one(asked, theirs)
        finally:
            os._exit(1)
    os.close(theirs)
    said = heard(mine, asked["wall"])
    os.close(mine)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    try:
        found = json.loads(said)
        return {"values": [str(value) for value in found["values"]], "failed": found["failed"]}
    except (ValueError, KeyError, TypeError):
        return stopped(status, asked["seconds"])


def main() -> None:
    """Serves until standard input ends, which it does with the process that asks."""
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
