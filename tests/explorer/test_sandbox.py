"""The sandbox: right programs give their values; those that loop, fork, read, connect or eat memory are
stopped, fail only themselves, and say why.
"""

import pytest

from explorer import sandbox
from explorer.sandbox import call
from explorer.tasks import TASKS, problems

CLASSES = "().__class__.__base__.__subclasses__()"
# how a program could get at the system without an import
GLOBALS = f"[c for c in {CLASSES} if c.__name__ == '_wrap_close'][0].__init__.__globals__"


def test_values_come_back_as_they_are_written():
    source = "import math\n\ndef f(x, y):\n    print('unheard')\n    return [x, str(y), {1}, math.floor(2.5)]"
    ran = call(source, "f", [(1, 2), ([3], "a")])
    assert ran.values == ["[1, '2', {1}, 2]", "[[3], 'a', {1}, 2]"] and ran.failed is None


def test_calls_before_a_failure_are_there():
    ran = call("def f(x):\n    return 6 // x", "f", [(2,), (0,), (3,)])
    assert ran.values == ["3"] and ran.failed == "It fails with ZeroDivisionError."


@pytest.mark.parametrize("body,why", [
    ("while True: pass", "may compute for 1 s"),
    ("return len(bytearray(10 ** 10))", "MemoryError"),
    ("return f(x)", "RecursionError"),
    ("return open('/etc/hostname').read()", "reaches for open"),
    ("open('/tmp/made', 'w')", "reaches for open"),
    ("import os; return os.fork()", "reaches for os"),
    ("import socket", "reaches for socket"),
    ("import subprocess", "reaches for subprocess"),
    (f"return {GLOBALS}['fork']()", "reaches for os.fork"),
    (f"return {GLOBALS}['system']('true')", "reaches for os.system"),
    (f"return {GLOBALS}['kill']({GLOBALS}['getppid'](), 9)", "reaches for os.kill"),
    (f"return {GLOBALS}['_exit'](0)", "ended its process"),
    ("raise SystemExit", "SystemExit"),
    ("return", None),
])  # fmt: skip
def test_what_reaches_outside_or_does_not_end_fails_only_itself(body, why):
    ran = call(f"def f(x):\n    {body}", "f", [(1,)])
    assert (ran.failed is None and ran.values == ["None"]) if why is None else why in ran.failed
    assert why is None or ran.values == []


def test_no_python_and_no_function():
    assert call("def f(x) return", "f", [(1,)]).failed == "It is no Python."
    assert call("g = 1", "f", [(1,)]).failed == "It defines no f."


def test_the_kernel_s_limits_hold_without_the_audit_hook(tmp_path, monkeypatch):
    """A second wall: no file can be opened and no process made even if the hook were passed."""
    server = sandbox.SERVER.read_text("utf-8").replace("    sys.addaudithook(guard)\n", "")
    (tmp_path / "server.py").write_text(server, "utf-8")
    monkeypatch.setattr(sandbox, "SERVER", tmp_path / "server.py")
    monkeypatch.setattr(sandbox, "_servers", [])
    assert call("def f(x):\n    return open('/dev/null')", "f", [(1,)]).failed == "It fails with OSError."
    forked = call(f"def f(x):\n    return {GLOBALS}['fork']()", "f", [(1,)]).failed
    assert forked == "It fails with BlockingIOError."


def test_a_system_that_cannot_bound_a_process_is_told_so(monkeypatch):
    monkeypatch.setattr(sandbox.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="Linux and macOS only"):
        call("def f(x): return x", "f", [(1,)])


def test_python_answers_are_judged_by_their_calls():
    problem = type(problems("python", 1)[0])(
        "python", "", "", {"parameters": "xs", "examples": [([[1, 2]], 3), ([[5]], 5), ([[]], 0)]}
    )
    check = TASKS["python"].check
    assert check(problem, "    return sum(xs)").right
    assert check(problem, "    t = 0\n    for x in xs:\n        t += x\n    return t\n\nprint(1)").right
    assert "fails with IndexError" in check(problem, "    return xs[0] + sum(xs[1:])").reason
    assert "gives 2 in a shown call" in check(problem, "    return len(xs)").reason
    assert "gives 3.0" in check(problem, "    return sum(xs) * 1.0").reason
    assert not check(problem, "").right and not check(problem, "return sum(xs)").right
