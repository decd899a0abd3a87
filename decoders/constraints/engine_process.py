"""A process in which native code may hang or crash: it is killed, and the next request starts another one.

It answers each line of JSON with a line of JSON.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from queue import Empty, Queue
from typing import Any

from decoders import packages

OUT_OF_TIME = -getattr(signal, "SIGPROF", 0)  # how a process ends that has used up its own time, see `within`


class EngineProcess:
    """`python -m module`, for one engine. `seconds` is the limit on the clock for one answer."""

    def __init__(self, module: str, engine: str, seconds: float, too_long: str):
        self.module, self.seconds = module, seconds
        self.crashed, self.too_long = f"{engine} crashed over it", too_long
        self.process: subprocess.Popen | None = None
        self.lives = 0  # how many processes there were
        self.lock = threading.Lock()

    def ask(self, *request: Any) -> dict:
        """The answer to a request; `{"problem": sentence}` if there is none in time."""
        with self.lock:
            if self.process is None and "problem" in (begun := self.start()):
                return begun
            return self.send(request, self.seconds)

    def start(self) -> dict:
        """Starts the process; `{"problem": sentence}` if it does not start. OSError if it may not."""
        paths = [str(packages.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            text=True,
        )
        self.lives, self.answers = self.lives + 1, Queue()
        threading.Thread(target=_listen, args=(self.process, self.answers), daemon=True).start()
        return {}

    def send(self, request: Any, seconds: float, too_long: str = "") -> dict:
        """As `ask`, for a running process; too_long: the sentence if this request takes too long."""
        too_long = too_long or self.too_long
        if self.process is None:  # it went over what was sent before
            return {"problem": self.crashed}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.answers.get(timeout=seconds)
        except Empty:
            self.close()
            return {"problem": too_long}
        except BrokenPipeError:
            answer = ""
        if answer:
            return json.loads(answer)
        ended = self.process.wait()
        self.close()
        return {"problem": too_long if ended == OUT_OF_TIME != 0 else self.crashed}

    def close(self) -> None:
        """Ends the process; the next request starts another one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def limit_computing(seconds: float) -> None:
    """Called in the process itself: ends it once it has used this much CPU time, even in native code; 0 for
    no limit. A busy machine does not shorten the limit. On a system without such a timer, only the clock of
    `EngineProcess` counts.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _listen(process: subprocess.Popen, answers: Queue) -> None:
    for line in process.stdout:
        answers.put(line)
    answers.put("")  # it is gone
