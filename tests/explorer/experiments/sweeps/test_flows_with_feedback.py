"""The experiment on feedback: what a checker puts into the next prompt, what is kept, what is counted."""

import pytest

from explorer.experiments.message_flows import Flow
from explorer.experiments.sweeps import flows_with_feedback as experiment
from explorer.tasks import Problem, problems

LISTS = "program for\n3 1 -> 1 3\n5 2 -> 2 5\n9 -> 9\nis\n"
CHAIN = Problem("chain", "start 3; +4; *2\n", "+4 -> 7\n*2 -> 14\nanswer 14")


@pytest.fixture
def scripted(monkeypatch):
    """scripted(texts): the generator writes these, one a call, for ten tokens; the prompts it was given."""

    def make(texts):
        prompts, left = [], list(texts)

        def write(content, state, ask):
            prompts.append(content["prompt"])
            return {"text": left.pop(0), "cost": 10.0}

        flow = Flow("generator", ("prompt",), ("text", "cost"), write)
        monkeypatch.setattr(experiment, "decoding", lambda *given, **settings: flow)
        return prompts

    return make


def test_the_first_test_that_failed_is_the_last_of_the_next_prompt():
    found = experiment.tested(LISTS, LISTS, "reverse")
    assert found == {"whole": "reverse", "passed": 1.0, "prompt": LISTS}
    found = experiment.tested(LISTS, "anything", "take 1")
    assert found["passed"] == pytest.approx(1 / 3)
    assert found["prompt"] == "program for\n5 2 -> 2 5\n9 -> 9\n3 1 -> 1 3\nis\n"


@pytest.mark.parametrize("task", ["list_program", "python"])
def test_a_right_program_passes_and_the_parts_make_the_prompt(task):
    for problem in problems(task, 5):
        head, tests, tail = experiment.parted(problem.prompt)
        assert head + "".join(tests) + tail == problem.prompt and len(tests) >= 2
        assert experiment.tested(problem.prompt, problem.prompt, problem.answer)["passed"] == 1.0


def test_a_chain_goes_on_behind_its_last_right_step():
    check = experiment.validated(CHAIN)
    first = check(CHAIN.prompt, CHAIN.prompt, "+4 -> 7\n*2 -> 15\nanswer 15")
    assert first["prompt"] == CHAIN.prompt + "+4 -> 7\n" and first["passed"] == 1 / 4
    second = check(CHAIN.prompt, first["prompt"], "*2 -> 14\nanswer 14")
    assert second["passed"] == 1.0 and second["whole"] == CHAIN.answer


@pytest.mark.parametrize("way", [experiment.AGAIN, experiment.FEEDBACK])
def test_the_best_is_kept_so_that_more_rounds_never_solve_less(way, scripted):
    """Programs that pass 1, 2, 0, 3 of the tests: kept are 1, 2, 2, 3; then nothing is asked any more."""
    problem = Problem(
        "list_program",
        "program for\n3 1 -> 1 3\n2 5 -> 2 5\n4 4 1 -> 1 4 4\nis\n",
        "sort",
        {"examples": [([3, 1], [1, 3]), ([2, 5], [2, 5]), ([4, 4, 1], [1, 4, 4])]},
    )
    prompts = scripted(["unique", "reverse", "total", "sort", "never asked"])
    messages = experiment.logged({}, problem, way)
    kept = [m.content["best_passed"] for m in messages if m.sender == "keeper"]
    assert kept == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1.0])
    assert experiment.solved(problem, messages) == [(False, 10), (False, 20), (True, 40), (True, 40)]
    assert (prompts[1] == problem.prompt) == (way == experiment.AGAIN)
    assert prompts[0] == problem.prompt and messages[-1].content["rounds"] == 4
    scripted(["unique", "reverse", "total", "sort", "never asked"])
    shown, calls = experiment.picture({}, [(problem, messages)])
    assert len(shown) == len(messages) and shown[0].sender == "you" == shown[-1].receiver
    asked = [told.call for told in shown if told.receiver == "generator"]
    assert asked == [told.call for told in shown if told.sender == "generator"] == [1, 2, 3, 4]
    assert not calls, "nothing was decoded"


def test_a_lead_is_clear_from_two_standard_errors_on():
    rival, found = [(False, 10.0)] * 4 + [(True, 10.0)] * 4, [(True, 20.0)] * 8
    rows = [{"task": "chain", **experiment.after(8, some, rival)} for some in (rival, found)]
    assert (rows[0]["right"], rows[1]["right"]) == (0.5, 1.0)
    assert (rows[1]["tokens"], rows[1]["ahead"]) == (20.0, 0.5)
    assert "0.500 ± 0.189, clearly ahead." in experiment.verdict(*rows)
    assert "no clear lead." in experiment.verdict(rows[0], rows[0])
