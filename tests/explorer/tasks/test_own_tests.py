"""The tests in a prompt: all right answers pass them, wrong ones by their share; others have none."""

import pytest

from explorer.tasks import problems
from explorer.tasks.own_tests import pass_rate, runs_code


@pytest.mark.parametrize("task", ["list_program", "python"])
def test_right_answers_pass_all_tests_of_their_prompts(task):
    for problem in problems(task, 12):
        assert pass_rate(problem.prompt, problem.answer) == 1.0, problem.prompt


def test_wrong_answers_pass_some_or_none():
    prompt = "program for\n1 2 -> 1 2\n2 1 -> 1 2\n3 ->\nis\n"
    assert pass_rate(prompt, "sort") == pytest.approx(2 / 3)
    assert pass_rate(prompt, "reverse\nno such line") == 0.0
    prompt = "# double\n# f(2) == 4\n# f(3) == 6\ndef f(x):\n"
    assert pass_rate(prompt, "    return x + 2") == 0.5
    assert pass_rate(prompt, "    return open('/etc/hosts').read()") == 0.0
    assert pass_rate(prompt, "    return x *") == 0.0


def test_prompts_without_tests_have_no_rate():
    assert pass_rate("Once upon a time", "sort") is None
    assert pass_rate("# f(__import__('os')) == 4\ndef f(x):\n", "    return 4") == 0.0


@pytest.mark.parametrize(
    "tests",
    ["f(" + "(" * 9000, "f(1, *[2]) == {[]: 1}", "f(" + "-" * 9000 + "1) == 1", "f(" + "9" * 9000 + ") == 1"],
)
def test_what_no_python_can_read_is_no_test(tests):
    prompt = f"# {tests}) == 4\ndef f(x):\n"
    assert pass_rate(prompt, "    return 4") == 0.0 and runs_code(prompt)


@pytest.mark.parametrize("line,head", [("# f(1) == f(1) == 2\n", ""), ("1 -> 1\n", "program for\n")])
def test_many_lines_are_read_in_no_time(line, head):
    """Each could be read in two ways: tried one by one, these would be more ways than there are seconds."""
    assert pass_rate(head + line * 400 + "no", "sort") is None
    assert not runs_code(head + line * 400 + "no")
