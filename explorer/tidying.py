"""Runs Python's search for cyclic garbage at times that we choose, and only rarely through everything that is
kept.

A trace of 50,000 nodes is a million objects without such garbage. The interpreter's own full search looks
through all of them again and again, for up to a second each time, while nothing else runs. Here objects that
have survived a search are set aside: the next search looks through new objects only, and once an hour a
search looks through all.
"""

import ctypes
import gc
import sys
import threading
import time

EVERY_SECONDS = 60.0
ALL_SECONDS = 3600.0
YOUNG = (2000, 10, 1_000_000_000)  # new objects before a search of the youngest; full ones only here


def begin() -> None:
    """Takes over from the interpreter; what exists by now is set aside."""
    gc.freeze()
    gc.set_threshold(*YOUNG)
    gc.enable()
    threading.Thread(target=_go_on, name="tidying", daemon=True).start()


def tidy(all_of_it: bool) -> None:
    """One full search through what is new, or through everything; what survives is set aside."""
    if all_of_it:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    give_back()


def give_back() -> None:
    """Free memory goes back to the system, where the C library can do that (glibc)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _go_on() -> None:
    last = time.monotonic()
    while True:
        time.sleep(EVERY_SECONDS)
        all_of_it = time.monotonic() - last >= ALL_SECONDS
        tidy(all_of_it)
        last = time.monotonic() if all_of_it else last
