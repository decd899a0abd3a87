"""On what findings stand: every stored answer says it, and the intervals are those of the textbooks."""

import pytest
from scipy.stats import ttest_1samp

from explorer import experiments
from explorer.experiments import basis
from explorer.experiments.basis import Basis, Compared, by_error, by_pairs, by_shares, by_wins
from explorer.page.tabs.experiments import heading

STORED = {answer["name"]: answer for answer in experiments.stored()}
stored = pytest.mark.parametrize("name", list(STORED))


def plain(**given) -> dict:
    """A basis as it is stored."""
    fields = {"units": {"prompts": 6}, "trained": None, "unfinished": "", "exact": "", "compared": []}
    return fields | given


def difference(low: float, high: float) -> dict:
    return {"what": "tokens", "difference": (low + high) / 2, "low": low, "high": high}


@stored
def test_every_stored_answer_says_on_what_it_stands(name):
    stands = STORED[name]["stands"]
    assert bool(stands["exact"]) != bool(stands["units"])
    assert all(many >= 1 for many in stands["units"].values())
    assert all(one["low"] <= one["difference"] <= one["high"] for one in stands["compared"])
    assert basis.says(stands) in experiments.table(STORED[name])


@stored
def test_a_finding_that_compares_stands_on_an_interval_without_zero_or_says_so(name):
    finding, stands = STORED[name]["finding"], STORED[name]["stands"]
    compared = stands["compared"]
    assert ("a single run" in finding) == (not stands["exact"] and not compared)
    assert ("trained once" in finding) == (stands["trained"] == 1 and bool(compared))
    for one in compared:
        assert (one["what"] in finding) == (not one["low"] > 0 and not one["high"] < 0), one
    assert ("not distinguishable" in finding) == any(not basis.clear(one) for one in compared)


def test_what_is_missing_is_in_the_finding():
    said = "A is 2, B is 1."
    assert basis.worded(said, plain()) == "A is 2, B is 1 (a single run, without intervals)."
    assert basis.worded(said, plain(compared=[difference(0.5, 1.5)])) == said
    unclear = plain(compared=[difference(0.5, 1.5), difference(-1.0, 2.0)], trained=1)
    assert basis.worded(said, unclear) == "A is 2, B is 1 (trained once; not distinguishable: tokens)."
    short = plain(trained=1, unfinished="the loss still falls")
    assert basis.worded(said, short).endswith(
        "(a single run, without intervals; before training had converged)."
    )
    assert "Training had not converged: the loss still falls." in basis.says(short)
    assert basis.worded(said, plain(units={}, exact="bytes are counted")) == said


def test_what_a_finding_stands_on_in_words():
    assert basis.says(plain(units={}, exact="bytes are counted")) == "Exact: bytes are counted."
    assert basis.says(plain(units={"prompts of each kind": 1})).startswith(
        "It stands on 1 prompt of each kind."
    )
    assert basis.says(plain()) == "It stands on 6 prompts. There are no intervals."
    said = basis.says(plain(trained=3, compared=[difference(-0.02, 0.04)]))
    assert "95% intervals: tokens +0.010 (−0.020 to +0.040)." in said
    assert "Trained 3 times, each with another seed." in said
    assert "Whether longer training changes it was not tried." in said
    assert "Trained once: with another seed it could come out differently." in basis.says(plain(trained=1))


def test_the_page_shows_it():
    answer = STORED["evolved-drafts"]
    assert "It stands on 100 seeds, 6 prompts. 95% intervals: " in heading(answer)


def test_paired_differences_have_student_s_interval():
    gaps = [0.3, 0.1, 0.4, -0.1, 0.2, 0.3]
    found, other = by_pairs("x", gaps), ttest_1samp(gaps, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(other))
    assert found.difference == pytest.approx(0.2)


def test_two_shares_have_newcombe_s_interval():
    """Newcombe (1998), example a: 56 of 70 against 48 of 80, by method 10."""
    found = by_shares("x", 56 / 70, 48 / 80, 70, 80)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_won_and_lost_cases_have_agresti_s_and_min_s_interval():
    """16 pairs won, 2 lost of 50: (16 - 2) / 52 plus and minus 1.96 standard errors."""
    found = by_wins("x", 16, 2, 50)
    assert found.difference == 14 / 50
    assert (found.low, found.high) == pytest.approx((0.12213, 0.41633), abs=1e-5)
    none = by_wins("x", 0, 0, 50)
    assert none.low < 0 < none.high


def test_a_standard_error_makes_an_interval():
    assert by_error("x", 1.0, 0.5) == Compared("x", 1.0, 1.0 - 0.98, 1.0 + 0.98)


def test_an_answer_that_is_concluded_again_keeps_what_was_measured():
    answer = STORED["evolved-drafts"]
    again = experiments.concluded(experiments.find("evolved-drafts"), answer)
    assert again["stands"]["compared"] == answer["stands"]["compared"] != []


def test_a_basis_has_a_unit_or_a_reason():
    assert Basis({"prompts": 1}).compared == [] and Basis(exact="it is counted").units == {}
