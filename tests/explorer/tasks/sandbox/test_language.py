"""The language of programs: what honest ones use is in it, what leads out of a value is not."""

import ast
import json
import re
import threading

import pytest

from explorer.tasks import problems
from explorer.tasks.python_programs import TEMPLATES
from explorer.tasks.sandbox import call, language
from explorer.tasks.sandbox.allowed import BUILTINS, MODULES, exports
from explorer.tasks.sandbox.language import attributes, refusal

HONEST = '''
"""A bit of everything that an answer may use."""
import collections, math as m, re, sys
from functools import lru_cache, partial, reduce
from itertools import chain, groupby
from operator import itemgetter
from typing import Dict, List, Optional, Union

LIMIT: int = sys.maxsize

@lru_cache(maxsize=None)
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def squares(xs: List[int]):
    for x in xs:
        yield x ** 2
    yield from (x for x in xs if not x % 2)

def f(xs: Optional[Dict[str, Union[int, List[int]]]], *more, key=None, **rest) -> list:
    global LIMIT
    total, _ = 0, 1
    def inner():
        nonlocal total
        total += 1
        return total
    try:
        assert inner() == 1, f"{total!r:>{8}} of {LIMIT:,}"
        raise ValueError("no")
    except (ValueError, KeyError) as error:
        total += len(error.args)
    finally:
        total *= 2
    counts = collections.Counter("banana").most_common(1)[0]
    groups = {k: list(g) for k, g in groupby(sorted([3, 1, 3]))}
    while total > 0 and (left := total):
        total -= left
        if left == 2:
            continue
        break
    else:
        pass
    found = re.search(r"(?P<n>\\d+)", "a12").group("n")
    best = max([(2, "b"), (1, "a")], key=itemgetter(0))[1]
    d = collections.defaultdict(list)
    d["x"].append(partial(pow, 2)(3))
    words = "%s-%d" % ("a", 3) + "x".join(map(str, chain.from_iterable([[1], [2]])))
    del d["y"]
    return [fib(20), list(squares([1, 2])), counts, groups, found, best, m.floor(-2.5), words,
            reduce(lambda a, b: a ^ b, [1, 2, 3]), xs[::-1] if xs else {*more}, format(5, "04b"), bin(5)]
'''.replace('del d["y"]', 'del d["x"]')

REFUSED = {  # what it reaches for -> programs
    "__traceback__": ("try: 1/0\nexcept Exception as e: g = e.__traceback__.tb_frame.f_back.f_globals",),
    "tb_frame": ("x.tb_frame",),
    "tb_next": ("x.tb_next",),
    "f_back": ("x.f_back",),
    "f_globals": ("x.f_globals",),
    "f_locals": ("x.f_locals",),
    "f_builtins": ("x.f_builtins",),
    "gi_frame": ("(i for i in ()).gi_frame",),
    "gi_code": ("x.gi_code",),
    "gi_yieldfrom": ("x.gi_yieldfrom",),
    "cr_frame": ("x.cr_frame",),
    "ag_frame": ("x.ag_frame",),
    "co_consts": ("x.co_consts",),
    "__class__": (
        "().__class__.__base__.__subclasses__()",
        "f'{().__class__}'",
        "f'{1:{().__class__}}'",
        "().__ｃlass__",
        "del ().__class__",
        "().__class__ = 1",
        "for ().__class__ in (): pass",
    ),
    "__subclasses__": ("x.__subclasses__()",),
    "mro": ("int.mro()",),
    "format": ("'{0.x}'.format(1)", "str.format('{0.x}', 1)", "f = ''.format"),
    "format_map": ("''.format_map({})",),
    "with_traceback": ("ValueError().with_traceback(None)",),
    "type": ("type('X', (), {})", "(type)(1)", "x = type"),
    "object": ("object()",),
    "super": ("super()",),
    "getattr": ("getattr(1, 'real')", "map(getattr, [1], ['real'])"),
    "setattr": ("setattr",),
    "delattr": ("delattr",),
    "hasattr": ("hasattr",),
    "vars": ("vars()",),
    "globals": ("globals()",),
    "locals": ("locals()",),
    "dir": ("dir()",),
    "eval": ("eval('1')",),
    "exec": ("exec('1')",),
    "open": ("open('/')", "def f(): return open"),
    "compile": ("compile",),
    "input": ("input()",),
    "breakpoint": ("breakpoint()",),
    "memoryview": ("memoryview(b'')",),
    "id": ("id(1)",),
    "classmethod": ("classmethod",),
    "property": ("property",),
    "exit": ("exit()",),
    "BaseException": ("try: 1\nexcept BaseException: 2",),
    "SystemExit": ("raise SystemExit",),
    "__import__": ("__import__('os')",),
    "__builtins__": ("__builtins__", "global __builtins__"),
    "__name__": ("__name__",),
    "_x": (
        "_x = 1",
        "def f(_x): 1",
        "def f(*_x): 1",
        "def _x(): 1",
        "f(_x=1)",
        "import math as _x",
        "lambda _x: 1",
        "try: 1\nexcept Exception as _x: 2",
        "def f():\n    nonlocal _x",
        "[0 for _x in ()]",
        "(_x := 1)",
    ),
    "os": ("import os", "from os import system", "import math, os", "import os as math"),
    "os.path": ("import os.path",),
    "collections.abc": ("import collections.abc",),
    "builtins": ("import builtins",),
    "importlib": ("import importlib",),
    "ctypes": ("import ctypes",),
    "inspect": ("import inspect",),
    "gc": ("import gc",),
    "types": ("import types",),
    "io": ("import io",),
    "threading": ("import threading",),
    "signal": ("import signal",),
    "asyncio": ("import asyncio",),
    "sys.modules": ("from sys import modules",),
    "modules": ("import sys\nsys.modules",),
    "operator.attrgetter": ("from operator import attrgetter",),
    "attrgetter": ("import operator as o\no.attrgetter('x')",),
    "methodcaller": ("x.methodcaller",),
    "functools.wraps": ("from functools import wraps",),
    "string.Formatter": ("from string import Formatter",),
    "collections.namedtuple": ("from collections import namedtuple",),
    "enum": ("import re\nre.enum.sys",),
    "functools": ("import re\nre.functools",),
    "typing.get_type_hints": ("from typing import get_type_hints",),
    "math.os": ("from math import os",),
    "its own package": ("from . import x",),
    "obj": ("e.obj",),
    "send": ("g.send(1)",),
}
NOT_IN_IT = {
    "a class": ("class A: pass", "class A(list, metaclass=M): pass"),
    "async": ("async def f(): pass",),
    "with": ("with f(): pass",),
    "match": ("match x:\n    case int(real=y): pass",),
    "TryStar": ("try: 1\nexcept* ValueError: 2",),
}
NO_PYTHON = (
    "f(",
    "\0",
    "(" * 9000,
    "-" * 9000 + "1",
    "1" * 9000,
    "x" + ".a" * 9000,
    "\ud800",
    "lambda:" * 2000,
)


def test_what_honest_programs_use_is_let_through_and_runs():
    assert refusal(HONEST) is None
    ran = call(HONEST, "f", [([1, 2],), (None, 3)])
    assert ran.failed is None and ran.values[0] == (
        "[6765, [1, 4, 2], ('a', 3), {1: [1], 3: [3, 3]}, '12', 'b', -3, 'a-31x2', 0, [2, 1], '0101', "
        "'0b101']"
    )
    assert ran.values[1].endswith("{3}, '0101', '0b101']")


def test_every_template_of_the_task_is_let_through():
    for says, parameters, text, _ in TEMPLATES:
        assert refusal(f"def f({parameters}):\n    return {text.format(k=3)}") is None, says
    assert all(refusal(p.prompt + p.answer) is None for p in problems("python", 20))


@pytest.mark.parametrize("name,source", [(n, s) for n, found in REFUSED.items() for s in found])
def test_what_leads_out_has_no_name_in_it(name, source):
    assert refusal(source) == f"It reaches for {name}, which is not allowed."


@pytest.mark.parametrize("words,source", [(w, s) for w, found in NOT_IN_IT.items() for s in found])
def test_what_is_not_in_it_is_called_by_its_name(words, source):
    assert refusal(source) == f"It uses {words}, which is not allowed."


@pytest.mark.parametrize("source", NO_PYTHON, ids=range(len(NO_PYTHON)))
def test_what_python_cannot_read_is_refused_and_harms_nobody(source):
    found = []
    reader = threading.Thread(target=lambda: found.append(refusal(source)))  # its stack is smaller
    reader.start()
    reader.join()
    assert found[0] is not None
    assert refusal("x" * 20_001) == "It is too long: a program may have at most 20,000 characters."


def test_names_that_a_program_gives_itself_are_its_own_and_lead_nowhere():
    source = "def f(input, id=0):\n    type = [input]\n    return type + [id]"
    assert call(source, "f", [(7,)]).values == ["[7, 0]"]
    stolen = "def g(open): pass\n\ndef f(x):\n    return open('/etc/passwd')"
    assert call(stolen, "f", [(1,)]).failed == "It fails with NameError."


def test_no_module_is_given_only_what_is_in_it():
    modules = type(re)
    for name in MODULES:
        given = vars(exports(name))
        assert given and not any(isinstance(value, modules) for value in given.values())
        assert not any(one.startswith("_") for one in given)
    assert not {"attrgetter", "methodcaller", "Formatter", "wraps", "namedtuple"} & attributes()


def test_no_attribute_of_the_language_belongs_to_frames_code_or_types():
    def gave():
        yield

    async def waited():
        pass

    frames = gave()
    try:
        raise ValueError
    except ValueError as error:
        trace = error.__traceback__
    later = waited()
    inner = (trace, trace.tb_frame, gave.__code__, frames, later, gave, type)
    names = {name for one in inner for name in dir(one)}
    later.close()
    assert names & attributes() == {"clear", "replace"}  # of a dict, and of a text
    assert not {"open", "eval", "getattr", "type", "vars", "object", "memoryview"} & BUILTINS


def test_the_check_knows_every_node_of_this_python():
    """What a later Python adds is refused until somebody has thought about it."""
    kinds = {name for name in dir(ast) if isinstance(getattr(ast, name), type)}
    assert language.NODES - {"Set"} <= kinds
    assert not {"ClassDef", "With", "AsyncFunctionDef", "Match", "Await", "Interactive"} & language.NODES
    assert json.dumps(sorted(language.NODES))  # plain words
