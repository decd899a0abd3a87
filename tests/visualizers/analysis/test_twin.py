"""Two engines over one text: what explains a difference, from numbers alone."""

import math

import pytest

from visualizers.analysis.twin import Reading, Twin, could_flip, too_large, twin

TOPS = [[-0.5, -1.5, -2.5, -4.0], [-0.9, -1.1, -2.0, -3.0], [-0.2, -2.2, -3.9, -5.0]]


def readings(change, token: int = 0) -> list[Reading]:
    """What an engine says whose log-probabilities are `change` of the list of one place."""
    found = []
    for top in map(change, TOPS):
        order = sorted(enumerate(top), key=lambda one: -one[1])
        rank = [at for at, _ in order].index(token) + 1
        found.append(Reading(top[token], rank, order, math.fsum(map(math.exp, top))))
    return found


def against(change, formats=("float32", "float32")) -> Twin:
    pairs = list(zip(readings(list), readings(change), strict=True))
    texts = dict(enumerate("abcd"))
    return twin(("a", "b"), formats, "", [0] * len(pairs), texts, pairs, [None] * len(pairs))


def scaled(top: list[float], temperature: float) -> list[float]:
    whole = math.log(math.fsum(math.exp(one / temperature) for one in top))
    return [one / temperature - whole for one in top]


def renormalised(top: list[float]) -> list[float]:
    whole = math.log(math.fsum(map(math.exp, top)))
    return [one - whole for one in top]


def test_rounding_is_as_large_as_the_format_makes_it():
    within = against(lambda top: [one + 5e-5 for one in top])
    assert within.counts == {"rounding": 3} and within.factor == 1
    for formats, verdict in ((("float32", "float32"), "other"), (("float32", "float16"), "rounding")):
        found = against(lambda top: [one + 0.05 * at for at, one in enumerate(top)], formats)
        assert found.counts == {verdict: 3}
    assert against(
        lambda top: [one + 0.05 * at for at, one in enumerate(top)], ("float32", "float16")
    ).counts == {"rounding": 3}


def test_a_flip_within_rounding_is_a_tie_and_a_small_lead_could_flip():
    found = against(lambda top: [top[0] - 0.15, top[1] + 0.1, *top[2:]], ("bfloat16", "float32"))
    assert found.counts == {"rounding": 2, "tie": 1}
    assert [one.flips for one in found.places] == [False, True, False]
    assert not could_flip(found)
    near = against(lambda top: [top[0] - 0.09, *top[1:]], ("bfloat16", "float32"))
    assert [one.position for one in could_flip(near)] == [2]


@pytest.mark.parametrize("temperature", [0.7, 1.3])
def test_a_temperature_is_one_factor_at_all_places(temperature):
    found = against(lambda top: scaled(top, temperature), ("float32", None))
    assert found.counts == {"temperature": 3} and found.factor == pytest.approx(1 / temperature)
    assert found.precision == "float32"


def test_a_truncation_adds_a_constant_at_each_place():
    found = against(lambda top: renormalised(top), ("float32", None))
    assert found.counts == {"renormalised": 3} and found.precision == "float32"
    shifts = [-math.log(math.fsum(map(math.exp, top))) for top in TOPS]
    assert [one.difference for one in found.places] == pytest.approx(shifts)


def test_differences_that_are_large_throughout_are_no_rounding():
    few = against(lambda top: [one + 0.2 for one in top], ("bfloat16", "float32"))
    assert not too_large(few)
    pairs = [(one.a, one.b) for one in few.places] * 4
    found = twin(("a", "b"), ("bfloat16", "float32"), "", [0] * 12, {0: "a"}, pairs, [None] * 12)
    assert found.counts == {"rounding": 12} and too_large(found)


def test_what_an_engine_does_not_name_is_unknown():
    nothing = Reading(None, None, [(1, -0.1)], 0.9)
    found = twin(("a", "b"), ("float32", None), "", [0], {0: "a"}, [(readings(list)[0], nothing)], [None])
    assert found.counts == {"unknown": 1} and found.places[0].difference is None
