"""The processes in which programs run, seen from outside: each one is fresh, is sealed before it receives its
one program, and is ended afterwards. One is started in advance, so that a program need not wait for Python.

A program never blocks its caller: time and output are also limited here, and the process is ended from
outside.
"""

import json
import marshal
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from decoders.refusal import Refusal
from explorer.tasks.sandbox.kernel import SECONDS
from explorer.tasks.sandbox.syscalls import seccomp_filter

RUNNER = Path(__file__).with_name("runner.py")
WALL_SECONDS = 2.0  # from sending a program to its answer
START_SECONDS = 30.0  # for Python to start on a very busy machine
LONGEST, MAX_BYTES = 10_000, 1_000_000  # maximum characters of a value, bytes of an answer
LONGEST_REASON = 200
STOPPED = "It reaches for the system, which is not allowed."  # for processes that the kernel has ended


@dataclass
class Cell:
    """A process that waits for its program. `held`: the active layers of its sandbox, once it has reported
    them.
    """

    process: subprocess.Popen
    held: frozenset[str] = field(default=frozenset())

    @property
    def sealed(self) -> bool:
        """Whether the kernel lets it only compute."""
        return "seccomp" in self.held


@dataclass(frozen=True)
class Ran:
    """The result of a program: the `repr` of each call's value, and a sentence why it failed, if it did. The
    calls before the failure are then included, unless it had to be stopped.
    """

    values: list[str]
    failed: str | None = None


def start(modules: tuple[str, ...] = ()) -> Cell:
    """A new process that begins to seal itself. It inherits three streams and nothing else: no
    environment, no open files, no session. modules: what it loads before that.
    """
    command = [sys.executable, "-I", "-S", str(RUNNER), (seccomp_filter() or b"").hex(), *modules]
    pipe = subprocess.PIPE
    return Cell(
        subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
            close_fds=True,
            start_new_session=True,
        )
    )


def settle(cell: Cell) -> bool:
    """Waits until the process has sealed itself; returns whether it succeeded."""
    if not cell.held:
        line, _ = exchange(cell.process, b"", START_SECONDS, until=b"\n")
        if line.endswith(b"\n"):
            cell.held = frozenset(line.decode("ascii", "replace").strip().split(","))
    return bool(cell.held)


def exchange(
    process: subprocess.Popen, message: bytes, seconds: float, until: bytes = b""
) -> tuple[bytes, bool]:
    """Sends a message, ends it unless `until` is waited for, and gives the answer: to its end, to
    `until`, or as much as is heard; and whether the time was up before.
    """
    received, deadline = b"", time.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        if not until:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin, selectors.EVENT_WRITE)
        while len(received) < MAX_BYTES and not (until and received.endswith(until)):
            left = deadline - time.monotonic()
            events = ready.select(left) if left > 0 else []
            if not events:
                return received, True
            for key, _ in events:
                if key.fileobj is process.stdin:
                    message = sent(process, message)
                    if not message:
                        ready.unregister(process.stdin)
                        process.stdin.close()
                elif more := os.read(key.fd, 1 << 16):
                    received += more
                else:
                    return received, False
    return received, False


def sent(process: subprocess.Popen, message: bytes) -> bytes:
    """The rest of a message after sending as much as the process accepts now."""
    try:
        return message[os.write(process.stdin.fileno(), message) :]
    except BlockingIOError:
        return message
    except OSError:  # it has ended; its answer says why
        return b""


def end(cell: Cell) -> int:
    """Ends the process and whatever it may have started; returns its status, as subprocess reports it."""
    process = cell.process
    try:
        os.killpg(
            process.pid, signal.SIGKILL
        )  # it was not waited for yet, so the process id is still its own
    except ProcessLookupError:
        process.kill()
    for stream in (process.stdin, process.stdout):
        stream.close()
    return process.wait()


def run_in(cell: Cell, asked: dict) -> Ran:
    """Sends a program to the process and returns its result; the process is ended afterwards."""
    received, late = exchange(cell.process, marshal.dumps(asked), WALL_SECONDS)
    status = end(cell)
    if len(received) >= MAX_BYTES:
        return Ran([], "It was stopped: its values are too long.")
    if late or status in (-signal.SIGXCPU, -signal.SIGKILL):
        return Ran([], f"It was stopped: it may compute for {SECONDS} s.")
    if status == -signal.SIGSYS:
        return Ran([], STOPPED)
    return answer(received) or Ran([], "It ended its process before it gave an answer.")


def answer(received: bytes) -> Ran | None:
    """A process's answer, which a program may have forged; None unless it consists only of strings."""
    try:
        reply = json.loads(received)
        values, failed = reply["values"], reply["failed"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = values if failed is None else [*values, failed]
    if not isinstance(values, list) or not all(isinstance(text, str) for text in texts):
        return None
    return Ran([text[:LONGEST] for text in values], failed and failed[:LONGEST_REASON])


_lock = threading.Lock()
_spare: list[Cell] = []  # at most one; it ends with this process


def ready() -> Cell:
    """A process that has sealed itself and has not received anything yet. Raises ValueError if none can be
    started.
    """
    with _lock:
        cell = _spare.pop() if _spare else start()
    for _ in range(2):  # the waiting process may have ended with the thread that started it
        if cell.process.poll() is None and settle(cell):
            return cell
        end(cell)
        cell = start()
    end(cell)
    raise Refusal("No process could be started to run a program in; restart the app.")


def prepare() -> None:
    """Starts a process that waits for the next program."""
    with _lock:
        if not _spare:
            _spare.append(start())
