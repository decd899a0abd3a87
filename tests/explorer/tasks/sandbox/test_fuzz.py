"""Hostile programs made from known tricks: a way to the system, what to do there, and something around it.
All of them are refused unread, and a good share is run by force: none reaches a canary.
"""

import random
import re

import pytest

from explorer.tasks.sandbox import call
from explorer.tasks.sandbox.language import refusal
from tests.helpers.sandbox_programs import HANDY, SECRET, STOPPED, Canaries, bare

PROGRAMS, FORCED, SEED = 500, 120, 20
BASE = "().__class__.__base__.__subclasses__()"
KINDS = ("()", "''", "[]", "{}", "(1)", "1.5", "b''", "set()", "(i for i in ())", "len", "(lambda: 0)")

# Ways to the module os: lines before, and an expression.
WAYS = [
    ("import os", "os"),
    ("from os import path", "__import__('os')"),
    ("", "__import__('os')"),
    ("", "__import__('o' + 's')"),
    ("import importlib", "importlib.import_module('os')"),
    ("import sys", "sys.modules['os']"),
    ("b = __builtins__", "(b if isinstance(b, dict) else b.__dict__)['__import__']('os')"),
    ("", "len.__self__.__import__('os')"),
    ("", "print.__self__.__dict__['__import__']('os')"),
    ("", "eval('__import__(\"os\")')"),
    ("space = {}\nexec('import os', space)", "space['os']"),
    ("", "eval(compile('__import__(\"os\")', 'x', 'eval'))"),
    ("", f"[c for c in {BASE} if c.__name__ == 'BuiltinImporter'][0].load_module('posix')"),
    (f"c = [c for c in {BASE} if '_wrap_' in c.__name__][0]", "c.__init__.__globals__['sys'].modules['os']"),
    ("c = KIND.__class__.__mro__[-1].__subclasses__()", "c[0].__class__.__call__ and __import__('os')"),
    ("", "getattr(getattr(KIND, '__cla' + 'ss__'), '__base__') and __import__('os')"),
    ("try: 1 / 0\nexcept Exception as e: b = e.__traceback__.tb_frame.f_builtins", "b['__import__']('os')"),
    ("try: 1 / 0\nexcept Exception as e: g = e.__traceback__.tb_frame.f_back.f_globals", "g['os']"),
    ("g = (i for i in ())", "g.gi_frame.f_builtins['__import__']('os')"),
    ("async def c(): pass\nk = c()\nb = k.cr_frame.f_builtins\nk.close()", "b['__import__']('os')"),
    ("async def a(): yield", "a().ag_frame.f_builtins['__import__']('os')"),
    ("def d(): pass", "d.__globals__['__builtins__'].__import__('os')"),
    ("def d(): pass", "d.__builtins__['__import__']('os')"),
    ("import operator", "operator.attrgetter('__self__.__import__')(len)('os')"),
    ("import operator", "operator.methodcaller('__getattribute__', '__import__')(len.__self__)('os')"),
    ("import functools", "functools.reduce(getattr, ['__self__', '__import__'], len)('os')"),
    ("import re", "re.enum.sys.modules['os']"),
    ("import collections", "collections._sys.modules['os']"),
    ("import inspect", "inspect.os"),
    ("import inspect", "inspect.currentframe().f_builtins['__import__']('os')"),
    ("import gc", "[o for o in gc.get_objects() if getattr(o, '__name__', '') == 'os'][0]"),
    ("import string\nclass A: o = __import__('os')", "string.Formatter().get_field('0.o', (A,), {})[0]"),
    ("class M(type):\n    def __getattr__(c, n): return __import__(n)\nclass A(metaclass=M): pass", "A.os"),
    ("class A:\n    def __init_subclass__(c): c.o = __import__('os')\nclass B(A): pass", "B.o"),
    ("import contextlib\nwith contextlib.nullcontext(__import__('os')) as o: pass", "o"),
    ("def w(f): return f.__globals__['__builtins__']\n@w\ndef d(): pass", "d.__import__('os')"),
    ("match len:\n    case object(__self__=b): pass", "b.__import__('os')"),
    ("", "(lambda f: f.__code__ and f.__builtins__['__import__'])(lambda: 0)('os')"),
    ("", "len.__ſelf__.__import__('os')"),  # the long s is an s to Python
    ("import types", "types.FunctionType(compile('__import__(\"os\")', 'x', 'eval'), {})()"),
    ("import threading", "threading._os"),
    ("import signal, ctypes", "__import__('os')"),
    ("from subprocess import os as o", "o"),
    ("import multiprocessing", "multiprocessing.process.os"),
]
# What to do there; o is the module. None would do lasting harm where a wall were missing.
ENDS = [
    "o.open('<SECRET>', 0)",
    "open('<SECRET>').read()",
    "o.write(o.open('<MADE>', 65), b'out')",
    "open('<MADE>', 'w').write('out')",
    "o.mkdir('<MADE>')",
    "o.symlink('/', '<MADE>')",
    "o.unlink('<SECRET>')",
    "o.chmod('<SECRET>', 0)",
    "o.listdir('/')",
    "o.stat('<SECRET>').st_size",
    "o.fork()",
    "[o.fork() for i in range(5)]",
    "o.system('echo > <MADE>')",
    "o.execv('/bin/sh', ['sh', '-c', 'echo > <MADE>'])",
    "o.kill(<PARENT>, 10)",
    "o.kill(-1, 0)",
    "o.killpg(0, 9)",
    "o.getppid()",
    "o.write(<PIPE>, b'out')",
    "[o.fstat(fd) for fd in range(2, 99)]",
    "o.write(2, b'out')",
    "o.dup(1)",
    "o.pipe()",
    "o.setuid(0)",
    "o.chroot('/')",
    "__import__('ctypes').CDLL(None).ptrace(0, 0, 0, 0)",
    "open('/proc/<PARENT>/mem', 'rb+')",
    "open('/proc/self/environ').read()",
    "open('/proc/<PARENT>/environ').read()",
    "__import__('socket').create_connection(('127.0.0.1', <TCP>))",
    "__import__('socket').socket(type=2).sendto(b'x', ('127.0.0.1', <UDP>))",
    "__import__('socket').socket(1).connect('<UNIX>')",
    "__import__('socket').socket(1).connect(chr(0) + '<ABSTRACT>')",
    "__import__('ctypes').CDLL(None).syscall(57)",
    "__import__('ctypes').CDLL(None).mprotect(4096, 4096, 7)",
    "__import__('ctypes').CDLL(None).prctl(22, 0, 0, 0, 0)",
    "__import__('signal').signal(14, print)",
    "__import__('threading').Thread(target=print).start()",
    "__import__('subprocess').Popen(['touch', '<MADE>'])",
    "__import__('mmap').mmap(-1, 4096, prot=7)",
]
# What stands around it: {before}, and {end} with {way} in it.
AROUND = [
    "{before}\no = {way}\nreturn {end}",
    "{before}\nreturn (lambda o: {end})({way})",
    "{before}\nreturn [{end} for o in [{way}]]",
    "{before}\ntry:\n    o = {way}\n    return {end}\nfinally:\n    {end}",
    "{before}\ndef inner(o={way}):\n    yield {end}\nreturn list(inner())",
    "{before}\no = {way}\nreturn max([1], key=lambda x: {end})",
    '{before}\no = {way}\nreturn f"{{({end})!r:>40}}"',
    "{before}\nfor i in range(3):\n    o = {way}\n    if i == 2: return {end}",
    "{before}\nclass Late:\n    def __del__(self): self.o and {end_of_self}\nlate = Late()\nlate.o = {way}\n"
    "o = late.o\ndel late\nreturn {end}",
    "{before}\nclass Shown:\n    def __repr__(self):\n        o = self.o\n        return str({end})\n"
    "shown = Shown()\nshown.o = {way}\nreturn shown",
    "{before}\nimport functools\no = {way}\nreturn functools.partial(lambda x: {end})(1)",
    "{before}\no = {way}\nwhile True:\n    return {end}",
]


def programs(count: int, seed: int) -> list[str]:
    """So many different programs, the same for the same seed."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        before, way = (part.replace("KIND", rng.choice(KINDS)) for part in rng.choice(WAYS))
        end = rng.choice(ENDS)
        of_self = re.sub(r"\bo\.", "self.o.", end)
        inside = rng.choice(AROUND).format(before=before, way=way, end=end, end_of_self=of_self)
        found["def f():\n" + "".join(f"    {line}\n" for line in inside.splitlines() if line)] = None
    return list(found)


@pytest.fixture(scope="module")
def canaries():
    with Canaries() as found:
        yield found


def test_the_fuzzer_writes_python(canaries):
    for source in programs(PROGRAMS, SEED):
        compile(canaries.filled(source), "answer", "exec")
    assert programs(9, SEED) == programs(9, SEED) != programs(9, SEED + 1)


def test_none_of_500_is_let_through_and_none_reaches_anything(canaries):
    for source in programs(PROGRAMS, SEED):
        filled = canaries.filled(source)
        assert refusal(filled), filled
        ran = call(filled, "f", [()])
        assert ran.values == [] and ran.failed == refusal(filled)
    canaries.check()


def test_by_force_they_only_fail_themselves(canaries):
    """Without the check: what the kernel does not stop has failed by itself."""
    stopped = 0
    for source in programs(FORCED, SEED + 1):
        ran = bare(canaries.filled(source), tuple(name for name in HANDY if name in source))
        assert ran.values == [] and ran.failed, source
        assert SECRET not in ran.failed
        stopped += ran.failed in (STOPPED, "It fails with PermissionError.")
    assert stopped > 0.8 * FORCED  # they do get as far as the wall
    canaries.check()
