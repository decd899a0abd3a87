"""The sandbox: right programs give their values; those that loop, fork, read, connect or eat memory are
stopped, fail only themselves, and say why.
"""

import asyncio
import json
import os
import threading

import pytest

import app
from explorer import cli
from explorer.page.layout import server_functions
from explorer.runs import callbacks
from explorer.runs.scheduler import Runs
from explorer.tasks import TASKS, problems, sandbox
from explorer.tasks.sandbox import call, process
from tests.helpers.ready_loader import ready_loader
from tests.helpers.sandbox_programs import STOPPED, bare, body

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


@pytest.mark.parametrize(
    "body,why",
    [
        ("while True: pass", "may compute for 1 s"),
        ("return len(bytearray(10 ** 10))", "MemoryError"),
        ("return f(x)", "RecursionError"),
        ("return open('/etc/hostname').read()", "reaches for open"),
        ("open('/tmp/made', 'w')", "reaches for open"),
        ("import os; return os.fork()", "reaches for os"),
        ("import socket", "reaches for socket"),
        ("import subprocess", "reaches for subprocess"),
        (f"return {GLOBALS}['fork']()", "reaches for __"),
        (f"return {GLOBALS}['system']('true')", "reaches for __"),
        (f"return {GLOBALS}['kill']({GLOBALS}['getppid'](), 9)", "reaches for __"),
        (f"return {GLOBALS}['_exit'](0)", "reaches for __"),
        ("raise SystemExit", "SystemExit"),
        ("return", None),
    ],
)
def test_what_reaches_outside_or_does_not_end_fails_only_itself(body, why):
    ran = call(f"def f(x):\n    {body}", "f", [(1,)])
    assert (ran.failed is None and ran.values == ["None"]) if why is None else why in ran.failed
    assert why is None or ran.values == []


def test_no_python_and_no_function():
    assert call("def f(x) return", "f", [(1,)]).failed == "It is not valid Python."
    assert call("return 1", "f", [(1,)]).failed == "It is not valid Python."
    assert call("g = 1", "f", [(1,)]).failed == "It defines no f."


def test_the_kernel_s_wall_holds_without_the_check_of_the_language():
    """A second wall: no file can be opened and no process made even if the check were passed."""
    assert bare(body("return open('/dev/null')")).failed == "It fails with PermissionError."
    for name in ("fork()", "system('true')", "kill(1, 0)", "getppid()"):
        function, arguments = name.split("(", 1)
        assert bare(body(f"return {GLOBALS}['{function}']({arguments}")).failed == STOPPED
    assert bare(body(f"return {GLOBALS}['_exit'](0)")).failed.startswith("It ended its process")


def test_a_system_that_cannot_bound_a_process_is_told_so(monkeypatch):
    monkeypatch.setattr(sandbox.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="only on Linux and macOS"):
        call("def f(x): return x", "f", [(1,)])


def test_what_is_on_is_found_out_by_trying():
    found = sandbox.protection()
    assert found.sealed and found.runs and {"seccomp", "limits"} <= set(found.layers)
    assert "lets them open no file, no connection and no process" in found.sentence
    assert ("Landlock" in found.sentence) == ("landlock" in found.layers)


@pytest.fixture
def open_air(monkeypatch):
    """A system whose kernel has no seccomp."""
    monkeypatch.setattr(process, "seccomp_filter", lambda: None)
    monkeypatch.setattr(process, "_spare", [])
    monkeypatch.setattr(sandbox, "_unsealed_too", [])
    sandbox.tried.cache_clear()
    yield
    sandbox.tried.cache_clear()
    while process._spare:
        process.end(process._spare.pop())


def test_without_the_wall_nothing_runs_unless_whoever_starts_the_app_says_so(open_air):
    assert not sandbox.protection().runs and "--run-code" in sandbox.protection().sentence
    with pytest.raises(ValueError, match="are not run: this system cannot isolate them"):
        call("def f(x): return x", "f", [(1,)])
    sandbox.allow_unsealed()
    assert sandbox.protection().runs and not sandbox.protection().sealed
    assert "cannot isolate them" in sandbox.protection().sentence
    assert call("def f(x): return x", "f", [(1,)]).values == ["1"]
    assert "reaches for open" in call("def f(x): open('/')", "f", [(1,)]).failed  # these walls stay
    assert "MemoryError" in call("def f(x): return [0] * 10 ** 10", "f", [(1,)]).failed


def test_a_wall_that_lets_one_probe_through_is_none(monkeypatch, open_air):
    monkeypatch.undo()
    monkeypatch.setattr(sandbox, "PROBES", (*sandbox.PROBES, "len('')"))
    assert not sandbox.protection().sealed


def test_a_lane_that_needs_programs_says_so_before_it_starts(open_air, monkeypatch):
    from decoders.registry import get

    python, numbers = "# f(1) == 1\ndef f(x):\n", "program for\n1 -> 1\nis\n"
    for name, asked in (("pg_td", {"scorer": "tests"}), ("treecoder", {"constraints": "syntax, tests"})):
        strategy, parameters = get(name), get(name).check(asked)
        with pytest.raises(ValueError, match="would run a program. Programs that a model writes are not run"):
            callbacks.check_tests(strategy, parameters, python)
        callbacks.check_tests(strategy, parameters, numbers)  # these are run by no Python
        callbacks.check_tests(strategy, strategy.check({}), python)
    sandbox.allow_unsealed()
    callbacks.check_tests(strategy, parameters, python)


def test_the_page_hears_what_is_on():
    hello = server_functions(Runs(lambda request: []), ready_loader())[0]
    assert json.loads(asyncio.run(hello({})))["code"] == sandbox.protection().sentence


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--prompt", "# f(1) == 1\ndef f(x):\n", "--strategy", "pg_td", "--set", "scorer=tests"],
        [
            "compare",
            "--prompt",
            "# f(1) == 1\ndef f(x):\n",
            "--strategy",
            "greedy",
            "--strategy",
            "treecoder",
            "--set",
            "constraints=tests",
        ],
    ],
)
def test_the_command_line_runs_programs_where_they_are_walled_in_or_it_is_told_to(command, open_air, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(command)
    assert ended.value.code == 2 and "--run-code" in capsys.readouterr().err
    cli.main([*command, "--max-new-tokens", "2", "--run-code"])
    assert not sandbox.protection().sealed and sandbox.protection().runs


def test_the_app_is_told_to_run_programs_by_whoever_starts_it(open_air):
    started = ["--model", "owner/model", "--draft", "none"]
    app.make(app.arguments(started))
    assert not sandbox.protection().runs
    app.make(app.arguments([*started, "--run-code"]))
    assert sandbox.protection().runs


def test_a_process_is_used_once_and_one_waits_for_the_next_program():
    source = "memory = []\n\ndef f(x):\n    memory.append(x)\n    return memory"
    assert [call(source, "f", [(i,)]).values for i in range(2)] == [["[0]"], ["[1]"]]
    (waiting,) = process._spare
    assert call(source, "f", [(3,)]).values == ["[3]"]
    assert waiting.process.returncode == 0 and process._spare != [waiting]


def test_a_process_that_has_ended_while_it_waited_is_replaced():
    call("def f(x): return x", "f", [(1,)])
    process._spare[0].process.kill()
    process._spare[0].process.wait()
    assert call("def f(x): return x", "f", [(2,)]).values == ["2"]
    gone = threading.Thread(target=process.prepare)  # it goes with the thread that started it
    process.end(process._spare.pop())
    gone.start()
    gone.join()
    assert call("def f(x): return x", "f", [(3,)]).values == ["3"]


def test_a_flood_is_cut_off():
    assert "too long" in call("def f(x): return 'x' * 9000", "f", [(1,)] * 200).failed
    assert "too long" in bare(body("import os", "while True: os.write(1, b'x' * 60000)")).failed
    (value,) = call("def f(x): return 'x' * 10 ** 6", "f", [(1,)]).values
    assert len(value) == process.LONGEST


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[" * 100_000,
        "null",
        "7",
        '{"values": 1, "failed": null}',
        '{"values": [1], "failed": null}',
        '{"values": "ab", "failed": null}',
        '{"failed": null}',
        '{"values": [], "failed": 3}',
        "NaN",
        "9" * 9999,
    ],
)
def test_an_answer_that_a_program_forges_is_texts_or_nothing(said):
    assert process.answer(said.encode()) is None
    assert process.answer(b"\xff\xfe") is None


def test_a_program_is_sent_whole_and_may_not_read_it():
    """More than a pipe holds; a process that ends before it has read all is no trouble."""
    source = "def f(xs): return len(xs)"
    assert call(source, "f", [(list(range(10**5)),)]).values == ["100000"]
    cell = process.start()
    process.settle(cell)
    os.kill(cell.process.pid, 9)
    assert process.run_in(cell, sandbox.asked(source, "f", [(list(range(10**5)),)])).failed


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
