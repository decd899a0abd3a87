"""The kernel's wall alone: known ways out of Python, straight into the process, with nobody having read them
before. Through `call` the same programs are refused unread. None reaches a canary, whatever it is at.
"""

import os
import resource

import pytest

from explorer.tasks.sandbox import asked, call, process
from explorer.tasks.sandbox.language import refusal
from tests.helpers.sandbox_programs import SECRET, STOPPED, Canaries, bare, body

BASE = "().__class__.__base__.__subclasses__()"
POSIX = f"[c for c in {BASE} if c.__name__ == 'BuiltinImporter'][0].load_module('posix')"
ISSUE = (  # the two escapes that the sandbox before this one had: its list is filled, or replaced
    "try: 1/0",
    "except Exception as e: g = e.__traceback__.tb_frame.f_back.f_globals",
    "g.setdefault('HARMLESS', set()).add('open')",
)
EVERYTHING = ("class All(set):", "    def __contains__(self, x): return True", "g['HARMLESS'] = All()")
DENIED = "It fails with PermissionError."

# Nothing here would do lasting harm where a wall were missing: signals to all are 0, bombs are small.
TRICKS = {
    "the first escape": (*ISSUE, "g['__builtins__'].open('<MADE>', 'w').write('out')"),
    "the second escape": (*ISSUE[:2], *EVERYTHING, "open('<MADE>', 'w').write('out')"),
    "a frame by a generator": (
        "def g(): yield h.gi_frame.f_back.f_back.f_globals",
        "h = g()",
        "return next(h)['os'].open('<SECRET>', 0)",
    ),
    "gi_frame": ("g = (i for i in (1,))", "return g.gi_frame.f_builtins['open']('<SECRET>').read()"),
    "a coroutine": (
        "async def c(): pass",
        "k = c()",
        "b = k.cr_frame.f_builtins",
        "k.close()",
        "return b['open']('<SECRET>').read()",
    ),
    "an asynchronous generator": (
        "async def c(): yield",
        "return c().ag_frame.f_builtins['open']('<SECRET>').read()",
    ),
    "__subclasses__": (f"return {POSIX}.open('<SECRET>', 0)",),
    "a format string": (
        "class A: pass",
        "A.g = (lambda: 0).__globals__",
        "'{0.g[__builtins__]}'.format(A())",
        "import string",
        "o, _ = string.Formatter().get_field('0.__init__', (A(),), {})",
        "open('<SECRET>')",
    ),
    "a metaclass": (
        "class M(type):",
        "    @classmethod",
        "    def __prepare__(*a): open('<MADE>', 'w')",
        "class A(metaclass=M): pass",
    ),
    "type": (
        "t = type('T', (), {'__del__': lambda self: open('<MADE>', 'w')})",
        "t()",
        "open('<MADE>', 'w')",
    ),
    "sys.modules": (
        "import sys",
        "return sys.modules['os'].listdir('/')",
    ),
    "new code": (
        "c = (lambda: 0).__code__.replace(co_code=b'd\\x00S\\x00' * 8)",
        "import types",
        "types.FunctionType(c, {})()",
        "import os",
        "os.fork()",
    ),
    "ctypes, by name": ("import ctypes", "return ctypes.CDLL(None).system(b'echo > <MADE>')"),
    "ctypes, a system call": (
        "import ctypes",
        "return ctypes.CDLL(None).syscall(57)",
    ),
    "ctypes, socket": ("import ctypes", "return ctypes.CDLL(None).socket(2, 1, 0)"),
    "ctypes, 32-bit calls": (
        "import ctypes",
        "return ctypes.CDLL(None).syscall(0x40000000 + 57)",  # x32: fork by another number
    ),
    "ctypes, ptrace": ("import ctypes", "return ctypes.CDLL(None).ptrace(0, 0, 0, 0)"),
    "ctypes, the filter away": ("import ctypes", "return ctypes.CDLL(None).prctl(22, 0, 0, 0, 0)"),
    "ctypes, io_uring": ("import ctypes", "return ctypes.CDLL(None).syscall(425, 8, 0)"),
    "ctypes, a namespace": ("import ctypes", "return ctypes.CDLL(None).unshare(0x10000000)"),
    "memory that can be run": ("import mmap", "return mmap.mmap(-1, 4096, prot=7)"),
    "a signal handler": ("import signal", "signal.signal(signal.SIGXCPU, signal.SIG_IGN)"),
    "a signal to the parent": ("import os", "os.kill(<PARENT>, 10)"),
    "a signal to all": ("import os", "os.kill(-1, 0)"),
    "a timer": ("import signal", "signal.setitimer(signal.ITIMER_REAL, 1)"),
    "inherited descriptors": (
        "import os",
        "for fd in range(2, 4096):",
        "    try: os.fstat(fd)",
        "    except OSError: continue",
    ),
    "the parent's pipe": ("import os", "os.write(<PIPE>, b'here')"),
    "another stream": ("import os", "os.write(2, b'here')"),
    "standard input again": ("import os", "os.write(0, b'here')"),
    "a copy of a stream": ("import os", "os.dup2(1, 0)"),
    "/proc, environment": ("return open('/proc/self/environ').read()",),
    "/proc, environment of the parent": ("return open('/proc/<PARENT>/environ').read()",),
    "/proc, memory": ("return open('/proc/<PARENT>/mem', 'rb+')",),
    "/proc, its own": ("return open('/proc/self/mem', 'rb+')",),
    "a list of files": ("import os", "return os.listdir('/')"),
    "what is known of a file": ("import os", "return os.stat('<SECRET>')"),
    "a link": ("import os", "os.symlink('<SECRET>', '<MADE>')"),
    "a file away": ("import os", "os.unlink('<SECRET>')"),
    "a folder": ("import os", "os.mkdir('<MADE>')"),
    "a shared file": ("import os", "os.memfd_create('x')"),
    "TCP": ("import socket", "socket.create_connection(('127.0.0.1', <TCP>))"),
    "UDP": ("import socket", "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', <UDP>))"),
    "a unix socket": ("import socket", "socket.socket(socket.AF_UNIX).connect('<UNIX>')"),
    "an abstract socket": ("import socket", "socket.socket(socket.AF_UNIX).connect('\\0<ABSTRACT>')"),
    "a fork": ("import os", "return os.fork()"),
    "a fork bomb": ("import os", "for i in range(5):", "    try: os.fork()", "    except OSError: pass"),
    "a thread": ("import threading", "threading.Thread(target=print).start()"),
    "another program": ("import os", "os.execv('/bin/sh', ['sh', '-c', 'echo > <MADE>'])"),
    "a subprocess": ("import subprocess", "subprocess.run(['touch', '<MADE>'])"),
    "root again": ("import os", "os.setuid(0)"),
    "more limits": ("import resource", "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))"),
    "a session": ("import os", "os.setsid()"),
    "sleep": ("import time", "time.sleep(60)"),
}


@pytest.fixture(scope="module")
def canaries():
    with Canaries() as found:
        yield found


@pytest.mark.parametrize("name", TRICKS)
def test_the_kernel_alone_lets_no_trick_reach_anything(name, canaries):
    source = canaries.filled(body(*TRICKS[name]))
    ran = bare(source, (*process_modules(source),))
    assert ran.values == [] and ran.failed in (STOPPED, DENIED)
    canaries.check()


@pytest.mark.parametrize("name", TRICKS)
def test_through_the_front_door_the_same_is_refused_unread(name, canaries):
    source = canaries.filled(body(*TRICKS[name]))
    assert refusal(source) and call(source, "f", [()]) == process.Ran([], refusal(source))


def process_modules(source: str) -> list[str]:
    """What a program imports; loaded before its process is sealed, as nothing can be afterwards."""
    found = [line.split()[1] for line in source.splitlines() if line.strip().startswith("import ")]
    return [*dict.fromkeys([*found, "os"])]


@pytest.mark.parametrize(
    "lines,why",
    [
        (("while True: pass",), "may compute for 1 s"),
        (
            ("import ctypes", "m = ctypes.pythonapi", "m.PyGILState_Ensure()", "while True: pass"),
            "may compute",
        ),
        (("try:", "    while True: pass", "except BaseException: pass"), "may compute for 1 s"),
        (("return len(bytearray(10 ** 10))",), "MemoryError"),
        (
            ("x = []", "while True: x.append(bytearray(1 << 20))"),
            "",
        ),  # of memory or time, whichever ends first
        (("x = 'a'", "while True: x += x"), ""),
        (("return f()",), "RecursionError"),
        (("import sys", "sys.setrecursionlimit(10 ** 9)", "g = lambda: g()", "g()"), ""),
        (("import os", "while True: os.write(1, b'x' * 65536)"), "too long"),
        (("import threading", "lock = threading.Lock()", "lock.acquire()", "lock.acquire()"), "may compute"),
        (("import ctypes", "ctypes.string_at(1)"), "ended its process"),
        (("import os", "os.abort()"), ""),
        (("import os", "os._exit(0)"), "ended its process"),
    ],
)
def test_what_takes_too_much_or_breaks_is_ended(lines, why, canaries):
    source = body(*lines)
    ran = bare(source, (*process_modules(source),))
    assert ran.values == [] and why in ran.failed
    canaries.check()


def test_nothing_of_this_process_is_in_it_and_nothing_of_it_comes_back(canaries, monkeypatch):
    monkeypatch.setenv("TOKEN", SECRET)
    before = (dict(os.environ), os.getcwd(), resource.getrlimit(resource.RLIMIT_CPU), os.getpgid(0))
    ran = bare(body("import os, sys", "os.environ['X'] = 'y'", "return dict(os.environ), sys.argv"))
    assert SECRET not in ran.values[0] and str(canaries.folder) not in ran.values[0]
    assert "'TOKEN'" not in ran.values[0] and ran.failed is None
    assert before == (dict(os.environ), os.getcwd(), resource.getrlimit(resource.RLIMIT_CPU), os.getpgid(0))
    canaries.check()


def test_a_program_may_forge_its_own_answer_and_no_other():
    """What cannot be kept out: it speaks for itself. The process is gone before the next program comes."""
    forged = body("import os", 'os.write(1, b\'{"values": ["1"], "failed": null}\')', "os._exit(0)")
    assert bare(forged) == process.Ran(["1"], None)
    assert call("def f(): return 2", "f", [()]).values == ["2"]


def test_without_seccomp_no_path_leads_anywhere(monkeypatch):
    """Landlock lets a process ask about files; as --run-code runs it, it finds none."""
    monkeypatch.setattr(process, "seccomp_filter", lambda: None)
    cell = process.start(("os",))
    assert process.settle(cell) and not cell.sealed
    if "root" not in cell.held:
        process.end(cell)
        pytest.skip("this system lets nobody change the root")
    lines = (
        "found = []",
        "for path in ('/etc', '/etc/passwd', '/proc/self', '/tmp', '..', '../..', '/..', '/usr/bin'):",
        "    try: found.append((path, os.stat(path).st_ino))",
        "    except OSError: pass",
        "for act in (lambda: os.mkdir('made'), lambda: os.chroot('..'), lambda: os.setuid(0)):",
        "    try: found.append(act())",
        "    except OSError: pass",
        "here = os.stat('/').st_ino",
        "return [one for one in found if one is None or one[1] != here]",
    )
    ran = process.run_in(cell, asked("import os\n" + body(*lines), "f", [()]) | {"whole": True})
    assert ran == process.Ran(["[]"])
