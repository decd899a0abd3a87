"""First finish search: the race and its costs, nested samples, the dossier's toy laws, votes and limits."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Forward, Propose, Verdict
from tests.helpers import tiny_models

END, A, B = 0, 1, 2


def run(model, prompt, new_tokens=12, seed=0, chooser=None, strategy="first_finish", **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane(strategy, prompt, {"target": model}, parameters, seed, limits, chooser).run()


def race(past) -> list[float]:
    """From the prompt [1, 1]: A then END, or B, B, END, each with one half."""
    new = past[2:]
    if not new:
        return [0.0, 0.5, 0.5]
    return [1.0, 0.0, 0.0] if new[-1] == A or len(new) == 2 else [0.0, 0.0, 1.0]


@pytest.fixture
def model():
    return tiny_models.make(endings=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_one_sample_is_plain_sampling(model, prompt, seed):
    settings = {"temperature": 0.9, "top_k": 20}
    alone = run(model, prompt, seed=seed, num_samples=1, **settings)
    assert alone.output() == run(model, prompt, seed=seed, strategy="sample", **settings).output()


@pytest.mark.parametrize("seed", range(5))
def test_more_samples_never_take_longer_and_draw_the_same(model, prompt, seed):
    found = [run(model, prompt, 30, seed, num_samples=n) for n in (1, 2, 4, 8)]
    lengths = [len(trace.output()) for trace in found]
    assert lengths == sorted(lengths, reverse=True)
    drawn = [
        [e.token for step in trace.steps for e in step.of(Propose) if e.slot == 1][: lengths[-1]]
        for trace in found[1:]
    ]
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize(("samples", "right"), [(1, 0.5), (2, 0.75), (4, 0.9375)])
def test_right_answers_that_are_shorter_win_more_often_exactly(samples, right):
    table = TableModel(race, 3, eos=frozenset({END}))
    law = Exhaustive().distribution(
        lambda chooser: tuple(run(table, [1, 1], 6, chooser=chooser, num_samples=samples).output())
    )
    assert law[A, END] == pytest.approx(right, abs=1e-12)
    assert law[B, B, END] == pytest.approx(1 - right, abs=1e-12)


def test_where_length_says_nothing_nothing_is_gained():
    """Right (A) and wrong (B) both take two tokens."""
    table = TableModel(
        lambda past: [0.0, 0.3, 0.7] if len(past) == 2 else [1.0, 0.0, 0.0], 3, frozenset({END})
    )
    law = Exhaustive().distribution(lambda chooser: tuple(run(table, [1, 1], 6, chooser=chooser).output()))
    assert law[A, END] == pytest.approx(0.3, abs=1e-12)


def test_all_samples_advance_together_and_the_rest_is_cut_off():
    """Length of the winner, n times: what was written; one forward per position."""
    table = TableModel(race, 3, eos=frozenset({END}))
    trace = next(t for t in (run(table, [1, 1], 6, seed) for seed in range(20)) if t.output() == [A, END])
    proposed = [e for step in trace.steps for e in step.of(Propose)]
    forwards = [e for step in trace.steps for e in step.of(Forward)]
    assert len(proposed) == 4 * 2 and len(forwards) == 2
    verdicts = [v for step in trace.steps for v in step.of(Verdict)]
    kept = {v.node for v in verdicts if v.status == "finished"} - {
        v.node for v in verdicts if v.status == "pruned"
    }
    assert len(kept) == 1
    assert "ended by hand" not in trace.ended


def test_finishers_vote_by_their_last_line():
    """B is more likely and longer: one finisher says A, all of them say B."""
    votes = TableModel(
        lambda past: [0.0, 0.3, 0.7] if len(past) == 2 else race(past), 3, eos=frozenset({END})
    )
    settings = {"num_samples": 5, "finishers": 5}
    law = Exhaustive().distribution(
        lambda chooser: tuple(run(votes, [1, 1], 6, chooser=chooser, **settings).output())
    )
    majority = 10 * 0.7**3 * 0.3**2 + 5 * 0.7**4 * 0.3 + 0.7**5
    assert law[B, B, END] == pytest.approx(majority, abs=1e-9)
    first = Exhaustive().distribution(
        lambda chooser: tuple(run(votes, [1, 1], 6, chooser=chooser, num_samples=5).output())
    )
    assert first[A, END] == pytest.approx(1 - 0.7**5, abs=1e-9)


def test_samples_cut_off_by_the_limit_do_not_count():
    endless = TableModel(lambda past: [0.0, 0.6, 0.4], 3, eos=frozenset({END}))
    trace = run(endless, [1, 1], 4, num_samples=3)
    assert len(trace.output()) == 4 and "max_new_tokens" in trace.ended
    notes = [e.text for step in trace.steps for e in step.events if type(e).__name__ == "Note"]
    assert any("No sample ended within the limit" in text for text in notes)


def test_what_makes_no_sense_is_refused(model, prompt):
    with pytest.raises(ValueError, match="only 2 samples are drawn"):
        run(model, prompt, num_samples=2, finishers=3)


def test_at_temperature_0_it_is_greedy_s_text(model, prompt):
    assert run(model, prompt, temperature=0.0).output() == run(model, prompt, strategy="greedy").output()


@pytest.mark.parametrize("also", [{}, {"eta_cutoff": 0.01}], ids=str)
def test_where_no_token_is_left_to_any_sample_a_sentence_says_so(also):
    model = TableModel(lambda past: [0.5, 0.3, 0.2], 3)
    limits, given = Limits(max_new_tokens=9), {"no_repeat_ngram_size": 1, **also}
    trace = Lane("first_finish", [0], {"target": model}, given, limits=limits).run()
    assert sorted(trace.output()) == [1, 2] and trace.ended.startswith("The processors left no token")
    trace = Lane("first_finish", [0, 1, 2], {"target": model}, given, limits=limits).run()
    assert trace.output() == [] and trace.ended.startswith("The processors left no token")
    for strategy, more in (("sample", {"num_return_sequences": 3}), ("mbr", {"num_samples": 3})):
        trace = Lane(strategy, [0], {"target": model}, {**given, **more}, limits=limits).run()
        assert sorted(trace.output()) == [1, 2] and trace.ended.startswith("The processors left no token")
