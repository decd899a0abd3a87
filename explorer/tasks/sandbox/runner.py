"""The code of the fresh process: it seals itself, reports the active layers, reads one program, runs it,
answers and ends.

python -I -S runner.py FILTER [MODULE ...]

The process has loaded nothing of the project but this file and two of its neighbours. It has no guard in
Python that a program could disable: the kernel confines it (kernel.py), and the parent process has checked
the program (language.py).
"""

import marshal
import os
import sys

sys.path.insert(0, __file__.rpartition("/")[0])

from _json import encode_basestring_ascii as quoted  # json itself is slow to load

import allowed
import kernel

LONGEST = 10_000  # maximum characters of a value


def run(asked: dict, offers: dict) -> tuple[list[str], str | None]:
    """The values of a program and why it failed, see sandbox.Ran. offers: the modules that it can import.

    An asked["whole"] program has all of Python at hand, for trying out what the kernel alone holds.
    """
    values, space = [], {"__name__": "answer"}
    if not asked["whole"]:
        space["__builtins__"] = allowed.functions() | {"__import__": lambda name, *rest: offers[name]}
    try:
        exec(compile(asked["source"], "answer", "exec"), space)
        function = space.get(asked["name"])
        if function is None:
            return [], f"It defines no {asked['name']}."
        for arguments in asked["calls"]:
            values.append(repr(function(*arguments))[:LONGEST])
    except SyntaxError:
        return values, "It is not valid Python."
    except BaseException as error:  # a program may raise anything, even SystemExit
        return values, f"It fails with {type(error).__name__}."
    return values, None


def read_all() -> bytes:
    """All of standard input."""
    parts = []
    while some := os.read(0, 1 << 16):
        parts.append(some)
    return b"".join(parts)


def write_all(data: bytes) -> None:
    """Writes to standard output."""
    while data:
        data = data[os.write(1, data) :]


def close_imports() -> None:
    """Prevents loading any module, and importing again those that give access to the system."""
    for cache in (sys.path, sys.path_hooks, sys.meta_path, sys.path_importer_cache):
        cache.clear()
    for name in ("ctypes", "_ctypes", "os", "posix", "resource", "kernel"):
        sys.modules.pop(name, None)


def main() -> None:
    """Serves one program; ends if none comes because the parent process has ended."""
    offers = {name: allowed.exports(name) for name in allowed.MODULES}
    for name in sys.argv[2:]:
        __import__(name)
    write, leave = write_all, os._exit
    held = kernel.seal(bytes.fromhex(sys.argv[1]))
    write(",".join([*held, "limits"]).encode() + b"\n")
    if message := read_all():
        asked = marshal.loads(message)  # from the parent process; not from a program
        sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None
        if not asked["whole"]:
            close_imports()
        values, failed = run(asked, offers)
        problem = "null" if failed is None else quoted(failed)
        write(f'{{"values": [{", ".join(map(quoted, values))}], "failed": {problem}}}'.encode())
    leave(0)


main()
