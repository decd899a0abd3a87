"""For the tests of the sandbox: programs that are sent straight to the sealed process, bypassing the check of
their language, with all of Python available; and canaries, which show whether a program reached anything
outside.
"""

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from explorer.tasks import sandbox
from explorer.tasks.sandbox import process
from explorer.tasks.sandbox.process import STOPPED, Ran

__all__ = ["STOPPED", "Canaries", "bare", "body", "children"]
SECRET = "the canary sings at noon"
# Loaded before the process is sealed, so that a program can use them without opening a file.
HANDY = (
    "os",
    "socket",
    "ctypes",
    "signal",
    "threading",
    "gc",
    "types",
    "subprocess",
    "mmap",
    "fcntl",
    "inspect",
    "multiprocessing",
)


def bare(source: str, modules: tuple[str, ...] = HANDY) -> Ran:
    """The result of `f()` of a program that was not checked before."""
    cell = process.start(modules)
    assert process.settle(cell) and cell.sealed
    return process.run_in(cell, sandbox.asked(source, "f", [()]) | {"whole": True})


def body(*lines: str) -> str:
    """The function `f()` of these lines."""
    return "def f():\n" + "".join(f"    {line}\n" for line in lines)


class Canaries:
    """Resources that a program must not reach, although only the sandbox prevents it: all of them are open to
    everyone on this machine.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="canaries-"))
        self.folder.chmod(0o777)
        self.secret, self.made = self.folder / "secret", self.folder / "made"
        self.secret.write_text(SECRET, "utf-8")
        self.secret.chmod(0o666)
        self.tcp, self.udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        self.unix, self.abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
        self.abstract_name = f"\0{self.folder.name}"
        places = ("127.0.0.1", 0), ("127.0.0.1", 0), str(self.folder / "unix"), self.abstract_name
        self.sockets = (self.tcp, self.udp, self.unix, self.abstract)
        for one, place in zip(self.sockets, places, strict=True):
            one.bind(place)
            one.setblocking(False)
            if one is not self.udp:
                one.listen()
        (self.folder / "unix").chmod(0o777)
        self.pipe = os.pipe()
        os.set_inheritable(self.pipe[1], True)
        self.heard: list[int] = []
        self.before = signal.signal(signal.SIGUSR1, lambda number, frame: self.heard.append(number))

    def filled(self, source: str) -> str:
        """A program with the canaries' addresses filled in."""
        places = {
            "SECRET": self.secret,
            "MADE": self.made,
            "TCP": self.tcp.getsockname()[1],
            "UDP": self.udp.getsockname()[1],
            "UNIX": self.folder / "unix",
            "ABSTRACT": self.folder.name,
            "PIPE": self.pipe[1],
            "PARENT": os.getpid(),
        }
        for name, place in places.items():
            source = source.replace(f"<{name}>", str(place))
        return source

    def check(self) -> None:
        """Asserts that nothing was reached."""
        assert {path.name for path in self.folder.iterdir()} == {"secret", "unix"}
        assert self.secret.read_text("utf-8") == SECRET
        for one in self.sockets:
            try:
                reached = one.recv(1) if one is self.udp else one.accept()
            except BlockingIOError:
                continue
            raise AssertionError(f"somebody came to {one}: {reached!r}")
        os.set_blocking(self.pipe[0], False)
        try:
            raise AssertionError(f"somebody wrote to the pipe: {os.read(self.pipe[0], 9)!r}")
        except BlockingIOError:
            assert self.heard == []
        waiting = {cell.process.pid for cell in process._spare}
        assert children() <= waiting | self.others

    def __enter__(self) -> "Canaries":
        self.others = children()
        return self

    def __exit__(self, *problem) -> None:
        signal.signal(signal.SIGUSR1, self.before)
        for one in self.sockets:
            one.close()
        for end in self.pipe:
            os.close(end)
        shutil.rmtree(self.folder)


def children() -> set[int]:
    """The child processes of this process that still exist, except those that were waited for."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = status.read_text("utf-8").rpartition(")")[2].split()[1]
        except OSError:  # it has gone meanwhile
            continue
        if int(parent) == os.getpid():
            found.add(int(status.parent.name))
    return found
