"""Tasks: right answers pass their checkers, wrong ones do not, and nothing that a model writes breaks one."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.tasks import TASKS, Problem, problems
from explorer.tasks.correction import MEANT, UNCLEAR, WORDS, misspellings, spoil
from explorer.tasks.prefixes import SCORED, possible
from explorer.tasks.records import unhelpful


@pytest.mark.parametrize("name", TASKS)
def test_the_right_answer_passes_and_a_mangled_one_fails(name):
    """A wrong answer is another problem's: it may be right by chance, but only now and then."""
    made = problems(name, 60)
    grades = [TASKS[name].check(p, p.answer + "\n\nmore text") for p in made]
    assert all(grade.right for grade in grades), next(g for g in grades if not g.right)
    crossed = [
        TASKS[name].check(p, q.answer) for p, q in zip(made, made[1:], strict=False) if p.answer != q.answer
    ]
    assert sum(g.right for g in crossed) <= 0.25 * len(crossed)
    assert not any(
        TASKS[name].check(p, wrong).right for p in made for wrong in ("", "\n", "x", p.answer[:-1] + "~")
    )


@pytest.mark.parametrize("name", TASKS)
def test_problems_come_from_the_seed_and_differ(name):
    """The same seed gives the same problems; there are many of them."""
    assert problems(name, 30, seed=1) == problems(name, 30, seed=1)
    assert problems(name, 30, seed=1) != problems(name, 30, seed=2)
    assert len({p.prompt for p in problems(name, 200)}) >= (12 if name == "upper" else 60)


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=120), seed=st.integers(0, 50))
def test_no_text_breaks_a_checker(name, text, seed):
    """Whatever a model writes is graded with a sentence."""
    (problem,) = problems(name, 1, seed)
    assert TASKS[name].check(problem, text).reason.endswith((".", "]"))


@pytest.mark.parametrize("name", ["column_sum", "chain", "word_problem", "countdown"])
def test_a_wrong_step_is_found_where_it_is(name):
    """Steps before it are right; the answer is not."""
    for problem in problems(name, 40):
        steps = problem.answer.split("\n")
        changed = steps[0][:-1] + str((int(steps[0][-1]) + 1) % 10)
        grade = TASKS[name].check(problem, "\n".join([changed, *steps[1:]]))
        assert not grade.right
        assert not grade.steps[0][1]
        right = TASKS[name].check(problem, problem.answer).steps
        assert right and all(ok for _, ok in right)


def test_other_right_answers_are_right_too():
    """Countdown, shuffles, word problems and programs have more than one answer."""
    task = TASKS["countdown"]
    problem = type(problems("countdown", 1)[0])("countdown", "", "", {"numbers": [3, 5, 9], "goal": 24})
    assert task.check(problem, "5*3=15\n9+15=24").right
    assert not task.check(problem, "9+9=18\n18+6=24").right
    program = TASKS["list_program"]
    problem = type(problem)("list_program", "", "", {"examples": [([1, 2], [3, 2]), ([5], [6])]})
    assert program.check(problem, "reverse\nadd 1").right
    assert program.check(problem, "add 1\nreverse").right
    assert not program.check(problem, "add 1").right


def test_some_training_records_are_unhelpful_on_purpose():
    """About one in seven; the checker refuses those, and the right answer stays the problem's own."""
    rng = random.Random(0)
    made = problems("json", 300)
    refused = [not TASKS["json"].check(p, unhelpful(p, rng)).right for p in made]
    assert 0.08 < sum(refused) / len(refused) < 0.22


def test_a_misspelt_word_has_one_cure():
    """No two words of the vocabulary have it in common, and it is none of them."""
    for problem in problems("correct", 300):
        wrong, right = problem.prompt[len("correct: ") : -len(" =>")], problem.answer.strip()
        assert wrong != right
        known = {word.lower().rstrip(".") for word in right.split()} | set(WORDS)
        for word in (w.lower().rstrip(".") for w in wrong.split()):
            if word not in known:
                assert MEANT[word] == 1 and word not in UNCLEAR
                assert sum(word in misspellings(w) for w in right.lower().rstrip(".").split()) == 1


def test_any_sentence_can_be_spoiled_and_the_grade_names_the_first_wrong_word():
    rng = random.Random(0)
    for told in (
        "He ran away.",
        "She was very sad.",
        "Once, a king had three strong sons and one old horse.",
    ):
        assert all(spoil(told, rng) != told for _ in range(50))
    problem = type(problems("correct", 1)[0])("correct", "correct: the dog run. =>", " The dog runs.")
    check = TASKS["correct"].check
    assert check(problem, " The dog runs.\nmore").right
    assert "'runs.', not 'run.'" in check(problem, "The dog run.").reason
    assert "3 words, not 2" in check(problem, "The dog").reason


@pytest.mark.parametrize("name", SCORED)
def test_a_beginning_is_possible_exactly_where_a_right_answer_begins_so(name):
    """Every beginning of a right answer is; what a checker calls right is; one wrong letter at its place and
    all that follows is not, unless it is the beginning of another right answer.
    """
    rng = random.Random(name)
    for problem in problems(name, 40):
        answer = problem.answer
        assert all(possible(problem, answer[:k]) for k in range(len(answer) + 1))
        at = rng.randrange(len(answer.lstrip())) + len(answer) - len(answer.lstrip())
        spoiled = answer[:at] + "~" + answer[at + 1 :]
        assert possible(problem, spoiled[:at])
        assert not any(possible(problem, spoiled[:k]) for k in range(at + 1, len(spoiled) + 1))
        mutated = answer[:at] + rng.choice("0123456789+-*=\n") + answer[at + 1 :]
        if TASKS[name].check(problem, mutated).right:
            assert possible(problem, mutated)


def test_a_dead_end_is_known_before_the_answer_is_finished():
    """True steps that cannot lead to the goal; sums that cannot become true."""
    countdown = Problem("countdown", "", "", {"numbers": [3, 5, 9], "goal": 24})
    assert possible(countdown, "3*5=15\n") and possible(countdown, "5*3=1")
    assert TASKS["countdown"].check(countdown, "9-5=4\n").steps == (("9-5=4", True),)
    assert not possible(countdown, "9-5=4\n")
    story = Problem("word_problem", "", "12+6=18\nanswer 18", {"answer": 18})
    for begun in ("12+", "12+6=1", "1+1=2\n12+6=18\nans", "12+6=18\nanswer 18\nmore"):
        assert possible(story, begun), begun
    for begun in ("12+6=2", "6-12", "12+6=17\n", "answer 1 8", "answer 17", "twelve"):
        assert not possible(story, begun), begun
    with pytest.raises(ValueError, match="no such rule"):
        possible(Problem("shuffle", "", ""), "")
