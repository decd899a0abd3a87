"""Bias: both laws at each token, exactly where allowed texts can be listed, else right on average.

The small language {000, 1xx} is worked out by hand; a random one is compared with all its texts.
"""

import math
from itertools import product
from types import SimpleNamespace

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.constraints import bias
from decoders.constraints.trie import Trie
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.events import Forward
from decoders.trace.scores import OTHERS, Table

LANGUAGE = [(0, 0, 0), *((1, a, b) for a in (0, 1) for b in (0, 1))]
BITS = TableModel(
    lambda past: {(): [0.5, 0.5], (0,): [0.1, 0.9], (0, 0): [0.1, 0.9]}.get(past[1:], [0.5, 0.5]), 2
)
TINY = dict(rel=0, abs=1e-9)


def lane_of(model, texts, chooser=None, seed=0, strategy="greedy", **parameters) -> Lane:
    given = {"constraint_bias": True, **parameters}
    lane = Lane(strategy, [0], {"target": model}, given, seed, Limits(len(texts[0])), chooser)
    lane.constrain(Trie(map(list, texts), model.vocabulary))
    return lane


def scores(trace) -> list[Table]:
    return [e for step in trace.steps for e in step.of(Table) if e.name == "bias"]


def test_the_rare_text_of_the_paper_is_fifty_times_too_likely():
    """Masked 0 with .5; among allowed texts .005 / .505. Greedy takes it, as ties go to the smaller token."""
    first, second, third = scores(lane_of(BITS, LANGUAGE).run())
    assert first.level == "exact"
    assert first.by_number[0] == pytest.approx([0.5, 0.005 / 0.505], **TINY)
    assert first.by_number[1] == pytest.approx([0.5, 0.5 / 0.505], **TINY)
    assert first.parts["allowed"] == pytest.approx(0.505, **TINY)
    assert first.parts["after"] == pytest.approx(0.01, **TINY)
    assert first.total == pytest.approx(0.5 - 0.005 / 0.505, **TINY)
    for forced in (second, third):
        assert forced.parts == {"kept": pytest.approx(0.1, **TINY)}
        assert forced.by_number == {0: [1.0, 1.0]}


def test_both_laws_equal_those_of_a_random_language():
    model, texts = (
        TableModel(random_table(4, 3), 3),
        [t for t in product(range(3), repeat=4) if sum(t) % 3 != 1],
    )
    trace = lane_of(model, texts, strategy="sample", temperature=0.5, seed=2).run()

    def p(text, length):
        row = [value**2 for value in model.table((0, *text[:length]))]  # at temperature 0.5
        return row[text[length]] / sum(row)

    whole = {text: math.prod(p(text, length) for length in range(4)) for text in texts}
    output = tuple(trace.output())
    for length, score in enumerate(scores(trace)):
        before = output[:length]
        below = {t: w for t, w in whole.items() if t[:length] == before}
        follow = sorted({t[length] for t in below})
        kept = sum(p((*before, token), length) for token in follow)
        for token in follow:
            true = sum(w for t, w in below.items() if t[length] == token) / sum(below.values())
            masked = p((*before, token), length) / kept
            assert score.by_number[token] == pytest.approx([masked, true], **TINY)
    laws = [score.by_number[token] for score, token in zip(scores(trace), output, strict=True)]
    local = math.prod(masked for masked, _ in laws)
    assert math.prod(masked / true for masked, true in laws) == pytest.approx(
        local / (whole[output] / sum(whole.values())), rel=1e-9
    )


def test_the_weight_of_a_drawn_text_is_right_on_average(monkeypatch):
    """Every history of one draw is walked: the mean of its weight is c itself."""
    monkeypatch.setattr(bias, "LISTED", 0)
    model, texts = TableModel(random_table(1, 2), 2), [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)]

    def weight(chooser):
        (record,) = (o for o in lane_of(model, texts, chooser).observers if isinstance(o, bias.BiasRecord))
        record.begin()
        return record.weight(record.at, record.draw([record.at])[0])

    law = Exhaustive().distribution(weight)
    wanted = sum(math.prod(model.table((0, *t[:n]))[t[n]] for n in range(3)) for t in texts)
    assert len(law) > 1 and sum(w * p for w, p in law.items()) == pytest.approx(wanted, abs=1e-12)


def test_where_texts_are_too_many_the_law_is_estimated_within_its_error(monkeypatch):
    model, texts = (
        TableModel(random_table(4, 3), 3),
        [t for t in product(range(3), repeat=4) if sum(t) % 3 != 1],
    )
    exact = scores(lane_of(model, texts).run())[0]
    monkeypatch.setattr(bias, "LISTED", 0)
    found = scores(lane_of(model, texts, constraint_bias_texts=256).run())[0]
    assert found.level == "estimated" and found.parts["texts"] == 256
    for token in range(3):
        (_, true, error), (_, wanted) = found.by_number[token], exact.by_number[token]
        assert 0 < error < 0.05
        assert abs(true - wanted) < 4 * error


def test_texts_that_begin_as_the_output_goes_on_count_again_and_stay_right_on_average(monkeypatch):
    """At the second token, where some texts were drawn for the first one: fewer are drawn, and the mean over
    many seeds of what the model allows is the exact one.
    """
    model, texts = (
        TableModel(random_table(4, 3), 3),
        [t for t in product(range(3), repeat=4) if sum(t) % 3 != 1],
    )
    exact = scores(lane_of(model, texts).run())[1]
    monkeypatch.setattr(bias, "LISTED", 0)
    drawn, draw = {}, bias.BiasRecord.draw  # depth of the output -> texts
    monkeypatch.setattr(
        bias.BiasRecord,
        "draw",
        lambda self, starts: (
            drawn.setdefault(self.tree.depths[self.at], []).append(len(starts)) or draw(self, starts)
        ),
    )
    found = [
        scores(lane_of(model, texts, seed=seed, constraint_bias_texts=4).run())[1] for seed in range(150)
    ]
    assert sum(drawn[1]) < sum(drawn[0])
    allowed = torch.tensor([score.parts["allowed"] for score in found], dtype=torch.float64)
    assert abs(float(allowed.mean()) - exact.parts["allowed"]) < 4 * float(allowed.std()) / len(found) ** 0.5
    mean_error = sum(score.parts["allowed error"] ** 2 for score in found) / len(found)
    assert mean_error == pytest.approx(
        float(allowed.var()), rel=0.3
    )  # the error that is told is the true one


def test_an_unlikely_token_is_one_of_the_others_only_where_texts_are_drawn(monkeypatch):
    model = TableModel(lambda past: [0.994, 0.005, 0.001] if len(past) == 1 else [0.2, 0.3, 0.5], 3)
    texts = [t for t in product(range(3), repeat=3) if sum(t) % 3 != 1]
    exact = scores(lane_of(model, texts).run())[0]
    monkeypatch.setattr(bias, "LISTED", 0)
    found = scores(lane_of(model, texts).run())[0]
    assert {1, 2} <= exact.by_number.keys() and OTHERS not in exact.by_number
    assert OTHERS in found.by_number and not {1, 2} & found.by_number.keys()


def test_all_tokens_that_are_not_named_are_one_number(monkeypatch):
    monkeypatch.setattr(bias, "NAMED", 1)
    model, texts = TableModel(random_table(3, 4), 4), [t for t in product(range(4), repeat=3) if sum(t) % 2]
    score = scores(lane_of(model, texts).run())[0]
    for law in zip(*score.by_number.values(), strict=True):
        assert sum(law) == pytest.approx(1, **TINY)
    assert OTHERS in score.by_number and len(score.by_number) == 2


def test_it_changes_neither_the_text_nor_what_the_lane_pays():
    model, texts = (
        TableModel(random_table(4, 3), 3),
        [t for t in product(range(3), repeat=4) if sum(t) % 3 != 1],
    )
    plain = lane_of(model, texts, strategy="sample", constraint_bias=False).run()
    measured = lane_of(model, texts, strategy="sample").run()
    assert measured.output() == plain.output() and not scores(plain)
    asked = [e for step in measured.steps for e in step.of(Forward) if e.kind == "lens"]
    assert measured.costs.lens_forwards == len(asked) > 0
    for name in ("target_forwards", "target_tokens", "new_tokens", "steps"):
        assert getattr(measured.costs, name) == getattr(plain.costs, name)


def test_a_target_that_names_few_tokens_is_refused():
    engine = SimpleNamespace(gives=lambda capability: False)
    served = SimpleNamespace(name="far", model_kind="causal", engine=engine)
    given = {"constraint": "regex", "constraint_bias": True}
    assert "'far' does not give" in bias.bias_problem(given, {"target": served})
    assert bias.bias_problem({"constraint_bias": True}, {"target": served}) is None
