"""Hidden messages: the dossier's numbers, the law of what is drawn, and what a reader makes of it."""

import math
import random
from collections import Counter

import pytest
import torch

from decoders.chooser import Exhaustive, Random
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.sampling.coupling import minimum_entropy_coupling
from decoders.sampling.coupling.minimum_entropy_coupling import coupled, encoder, entropy, information
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Commit, Distribution, Note, Propose, Verdict
from decoders.trace.scores import Measure, Score
from tests.helpers import tiny_models
from tests.helpers.losslessness import statistics

P = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)


def run(model, new_tokens, seed=0, chooser=None, **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane("coupling", [0], {"target": model}, parameters, seed, limits, chooser).run()


def random_laws(count: int):
    """Laws of 2 to 12 symbols, skewed, with a budget that is too small for them."""
    rng = random.Random(0)
    for _ in range(count):
        weights = torch.tensor([rng.random() ** 3 + 1e-6 for _ in range(rng.randint(2, 12))])
        law = weights.double() / weights.double().sum()
        yield law, rng.random() * entropy(law)


def test_maps_of_the_worked_example():
    sizes = {
        round(minimum_entropy_coupling.size(P, groups), 4)
        for groups in minimum_entropy_coupling.partitions(3)
    }
    assert sizes == {1.1568, 0.8813, 0.7219, 0.4690, 0.0}
    found = {}
    for bits in (1.0, 0.8, 0.6):
        for search in ("greedy", "exact"):
            found[search, bits] = round(information(encoder(P, bits, search)), 4)
    assert found["greedy", 1.0] == found["exact", 1.0] == 0.8813
    assert found["exact", 0.8] == 0.7219 and minimum_entropy_coupling.exact(P, 0.8) == [(0, 2), (1,)]
    assert found["greedy", 0.8] == found["greedy", 0.6] == found["exact", 0.6] == 0.4690


def test_with_bits_to_spare_every_symbol_stands_alone():
    for search in minimum_entropy_coupling.ENCODERS:
        assert torch.equal(encoder(P, entropy(P) + 0.01, search), torch.diag(P))


def test_the_greedy_map_is_near_the_budget():
    """R - H(T) <= h(p_2) in all of 400 laws, and it merges more than the smallest for it."""
    only_small = 0
    for law, bits in random_laws(400):
        second = float(law.sort(descending=True).values[1])
        limit = entropy(torch.tensor([second, 1 - second])) + 1e-9
        below, above = minimum_entropy_coupling.greedy(law, bits)
        assert 0 <= bits + 1e-9 - minimum_entropy_coupling.size(law, below) <= limit + 1e-9
        assert minimum_entropy_coupling.size(law, above) > bits
        groups = [(x,) for x in range(len(law))]
        while minimum_entropy_coupling.size(law, groups) > bits:
            groups = minimum_entropy_coupling.merge_groups(law, groups, largest=False)
        only_small += bits - minimum_entropy_coupling.size(law, groups) > limit
    assert only_small > 10


def test_between_two_maps_the_budget_is_spent_and_nothing_is_lost():
    for law, bits in random_laws(60):
        joint = encoder(law, bits, "between")
        assert torch.allclose(joint.sum(1), law)
        assert entropy(joint.sum(0)) == pytest.approx(bits, abs=1e-6)
        assert (
            information(joint)
            >= minimum_entropy_coupling.size(law, minimum_entropy_coupling.greedy(law, bits)[0]) - 1e-9
        )


def test_the_exact_map_is_never_worse_and_refuses_too_many_symbols():
    for law, bits in [found for found in random_laws(60) if len(found[0]) <= 6][:12]:
        best = information(encoder(law, bits, "exact"))
        assert bits + 1e-9 >= best >= information(encoder(law, bits, "greedy")) - 1e-9
    with pytest.raises(ValueError, match="tried for up to 8 symbols, not 9; choose another"):
        minimum_entropy_coupling.exact(torch.full((9,), 1 / 9), 1.0)


def test_coupling_of_the_worked_example():
    found = coupled([0.5, 0.5], [0.6, 0.3, 0.1]).joint()
    assert torch.allclose(found, torch.tensor([[0.5, 0, 0], [0.1, 0.3, 0.1]], dtype=torch.float64))
    assert entropy(found) == pytest.approx(1.6855, abs=5e-5)
    assert information(found) == pytest.approx(0.6100, abs=5e-5)


def test_a_coupling_keeps_both_laws_and_has_few_cells():
    draw = torch.Generator().manual_seed(0)
    for _ in range(50):
        p, q = (torch.rand(n, generator=draw, dtype=torch.float64) ** 4 for n in (5, 40))
        p, q = p / p.sum(), q / q.sum()
        table = coupled(p.tolist(), q.tolist())
        joint = table.joint()
        assert (joint.sum(1) - p).abs().max() < 1e-14 and (joint.sum(0) - q).abs().max() < 1e-14
        assert int((joint > 0).sum()) <= 44
        assert information(joint) > 0.5 * entropy(p)
        assert table.column(7) == joint[:, 7].tolist()


SETTINGS = [
    {"weights": [4, 2, 1], "confidence": 0.8},
    {"weights": [4, 2, 1], "confidence": 0.9999, "bits": 1.0},
    {"weights": [3, 1, 1, 1], "bits": 1.3, "encoder": "between", "confidence": 0.6},
    {"weights": [1, 1], "temperature": 0.7, "top_k": 2},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("eos", [frozenset(), frozenset({1})])
def test_averaged_over_messages_the_text_has_exactly_the_model_s_law(settings, eos):
    """The message is drawn, too: all its letters, all ways to send them, all tokens, to 1e-12."""
    model = TableModel(random_table(3, zeros=0.2), 3, eos)
    law = Exhaustive().distribution(
        lambda chooser: tuple(run(model, 3, chooser=chooser, **settings).output())
    )
    assert distance(law, exact_distribution(model, [0], 3, shape_of(settings))) < 1e-12


def test_first_tokens_of_twenty_thousand_messages_follow_the_row():
    q = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04], dtype=torch.float64)
    prior = [1 / 8] * 8
    table = coupled(prior, q.tolist())
    rows = [table.row(t) for t in range(8)]
    draws = Random(7)
    messages = [draws.categorical(torch.tensor(prior), ("m", n)).value for n in range(20_000)]
    seen = Counter((draws.categorical(rows[t], ("y", n)).value,) for n, t in enumerate(messages))
    p_value, _, _ = statistics(seen, {(y,): float(x) for y, x in enumerate(q)})
    assert p_value > 0.001


def test_one_message_alone_shows():
    """Of one given letter the first token does not have the model's law: the average is over letters."""
    model = TableModel(lambda past: [0.6, 0.3, 0.1], 3)
    alone = Exhaustive().distribution(
        lambda chooser: tuple(run(model, 1, chooser=chooser, message="a", weights=[1, 1]).output())
    )
    assert alone == pytest.approx({(0,): 1.0})


def test_nearly_all_letters_are_read_after_enough_tokens():
    """100 letters, each read after the rows offered more than twice its bits: at least 95 in 100."""
    model, right, count = TableModel(random_table(5, 12, 0.5), 12), 0, 100
    code_bits = entropy(torch.tensor([8, 4, 2, 1, 1]) / 16)
    for seed in range(count):
        trace = run(model, 6, seed, confidence=0.9999)
        offered, beliefs = 0.0, []
        for step in trace.steps:
            offered += step.of(Distribution)[0].entropy / math.log(2)
            beliefs.append(step.of(Score))
            if offered > 2 * code_bits:
                break
        last = [e for e in beliefs[-1] if e.name == "belief"][-1]
        first = [e for step in trace.steps for e in step.of(Measure) if e.name == "letter"][:1]
        ended = bool(first) and first[0] in [e for events in beliefs for e in events]
        right += first[0].parts["right"] if ended else last.total == max(last.parts.values())
    assert right / count >= 0.95


def test_what_is_told_is_what_was_done(prompt):
    """Beliefs are Bayes' rule on the cells that were told, and the reader needs no more than them."""
    trace = run(tiny_models.make(endings=0.05), 24, message="abacad", temperature=0.8)
    for step in trace.steps:
        beliefs = [e for e in step.of(Measure) if e.name == "belief"]
        drawn = step.of(Commit)[0].nodes[0] if step.of(Commit) else None
        cells = {e.node: e for e in step.of(Measure) if e.name == "coupling"}
        if drawn not in cells:
            continue
        told = cells[drawn]
        assert sum(told.parts.values()) == pytest.approx(told.total)
        for sign, belief in beliefs[-1].parts.items():
            assert belief == pytest.approx(told.parts.get(sign, 0.0) / told.total)
        others = {e.node for e in step.of(Verdict)}
        assert others == {e.node for e in step.of(Propose)} - {drawn}
    said = [e.text for step in trace.steps for e in step.of(Note)]
    assert "of 6 letters are right." in said[-1] and said[-1].startswith("Sent abacad, read ")


def test_after_the_message_come_plain_samples():
    model = TableModel(random_table(1, 4), 4)
    trace = run(model, 30, message="a", weights=[1, 1], confidence=0.6)
    beliefs = [bool([e for e in s.of(Measure) if e.name == "belief"]) for s in trace.steps]
    assert beliefs[0] and not any(beliefs[-10:])


def test_at_temperature_0_it_is_greedy_and_nothing_is_read(prompt):
    model = tiny_models.make()
    trace = run(model, 10, temperature=0.0, message="ab")
    limits = Limits(max_new_tokens=10)
    assert trace.output() == Lane("greedy", [0], {"target": model}, limits=limits).run().output()
    beliefs = [e for step in trace.steps for e in step.of(Measure) if e.name == "belief"]
    assert all(e.parts == beliefs[0].parts for e in beliefs)


def test_what_cannot_be_is_said():
    model = TableModel(lambda past: [0.5, 0.5], 2)
    for given, said in (
        ({"message": "abz"}, "may have the letters a to e, one for each of the weights, but not 'z'"),
        ({"weights": [1]}, "a number for each of 2 to 26 letters, not 1"),
        ({"weights": [1] * 9, "encoder": "exact"}, "up to 8 letters, not 9; use greedy"),
    ):
        with pytest.raises(ValueError, match=said):
            run(model, 4, **given)
