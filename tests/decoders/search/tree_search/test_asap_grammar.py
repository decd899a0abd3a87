"""ASAp under a mask: what a grammar forbids is learned, and draws become those of the model's allowed texts.

The small language {000, 1xx} is worked out by hand; a random one is compared with its exact conditional.
"""

import math
from itertools import product

import pytest
import torch

from decoders.chooser import Exhaustive, Script
from decoders.constraints.trie import Trie
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.tree_search.asap import Asap
from decoders.search.tree_search.constraints import Gate
from decoders.search.tree_search.program_tree import Programs
from decoders.search.tree_search.treecoder import DECODERS
from decoders.testing import random_table
from decoders.trace.events import Note, Verdict
from decoders.trace.scores import Measure

LANGUAGE = [(0, 0, 0), *((1, a, b) for a in (0, 1) for b in (0, 1))]
BITS = TableModel(
    lambda past: {(): [0.5, 0.5], (0,): [0.1, 0.9], (0, 0): [0.1, 0.9]}.get(past[1:], [0.5, 0.5]), 2
)
RARE = 0.005 / 0.505


def lane_of(model, texts, length, strategy="asap", chooser=None, seed=0, **parameters) -> Lane:
    lane = Lane(strategy, [0], {"target": model}, parameters, seed, Limits(length), chooser)
    lane.constrain(Trie(map(list, texts), model.vocabulary))
    return lane


def decoder_of(lane, samples) -> Asap:
    return Asap(Programs(lane, Gate(lane)), samples, False)


def draw_text(decoder) -> None:
    number = decoder.number
    while decoder.number == number:
        decoder.token()


def law_of_the_next_text(decoder, model, texts, length) -> dict:
    """Exactly, from what has been learned so far."""
    law = {}
    for text in texts:
        probability, node = 1.0, decoder.programs.root
        for at, token in enumerate(text):
            follow = {t[at] for t in texts if t[:at] == text[:at]}
            row = [p if t in follow else 0.0 for t, p in enumerate(model.table((0, *text[:at])))]
            weights = torch.tensor(row, dtype=torch.float64)
            if node in decoder.futures.probs:
                weights = decoder.futures.weights(node)
            probability *= float(weights[token] / weights.sum())
            node = decoder.below.get((node, token), -1)
        law[text] = probability
    return law


def test_the_first_text_through_a_rare_beginning_makes_it_rare():
    lane = lane_of(BITS, LANGUAGE, 3, chooser=Script([1, 0, 1, 0, 0, 0]))
    decoder, futures = decoder_of(lane, 9), None
    futures, root = decoder.futures, decoder.programs.root
    assert law_of_the_next_text(decoder, BITS, LANGUAGE, 3)[0, 0, 0] == pytest.approx(0.5, abs=1e-15)
    draw_text(decoder)  # 101 changes nothing
    assert futures.of(root) == 1.0
    assert law_of_the_next_text(decoder, BITS, LANGUAGE, 3)[0, 0, 0] == pytest.approx(0.5, abs=1e-15)
    draw_text(decoder)  # 000
    zero = decoder.below[root, 0]
    assert futures.of(decoder.below[zero, 0]) == pytest.approx(0.1, abs=1e-15)
    assert futures.of(zero) == pytest.approx(0.01, abs=1e-15)
    assert futures.of(root) == pytest.approx(0.505, abs=1e-15)
    assert law_of_the_next_text(decoder, BITS, LANGUAGE, 3)[0, 0, 0] == pytest.approx(RARE, abs=1e-15)
    assert round(RARE, 5) == 0.0099
    lane.close()


def test_the_law_of_the_second_text_by_walking_every_draw():
    law = Exhaustive().distribution(
        lambda chooser: tuple(lane_of(BITS, LANGUAGE, 3, chooser=chooser, samples=2).run().output())
    )
    assert law[0, 0, 0] == pytest.approx(0.5 * RARE + 0.5 * 0.5, abs=1e-12)
    masked = Exhaustive().distribution(
        lambda chooser: tuple(lane_of(BITS, LANGUAGE, 3, chooser=chooser, samples=1).run().output())
    )
    assert masked[0, 0, 0] == pytest.approx(0.5, abs=1e-12)


def test_on_a_random_language_bounds_fall_to_the_truth():
    """c~ never rises, is never below the exact c, and the law comes near the exact conditional."""
    model = TableModel(random_table(1), 3)
    texts = sorted(t for t in product(range(3), repeat=4) if (t[0] * 2 + t[1] + t[2] * t[3]) % 3 == 0)

    def mass(start: tuple) -> float:
        """The exact c: the probability that what the model writes after `start` is allowed."""
        return sum(
            math.prod(model.table((0, *text[:at]))[text[at]] for at in range(len(start), 4))
            for text in texts
            if text[: len(start)] == start
        )

    exact = {t: mass(()) and math.prod(model.table((0, *t[:i]))[t[i]] for i in range(4)) for t in texts}
    conditional = {t: p / mass(()) for t, p in exact.items()}

    lane = lane_of(model, texts, 4, seed=3)
    decoder, far, before = decoder_of(lane, 1000), {}, {}
    for count in range(201):
        law = law_of_the_next_text(decoder, model, texts, 4)
        far[count] = sum(abs(law[t] - p) for t, p in conditional.items()) / 2
        for node in decoder.futures.probs:
            now = decoder.futures.of(node)
            assert now <= before.get(node, 1.0) + 1e-12
            assert now >= mass(tuple(lane.tree.text(node)[1:])) - 1e-12
            before[node] = now
        draw_text(decoder)
    assert far[0] > 0.1 and far[200] < 0.01 and far[200] < far[50] < far[0]
    assert decoder.futures.of(decoder.programs.root) == pytest.approx(mass(()), abs=0.01)
    lane.close()


def test_a_mask_that_removes_nothing_leaves_every_bound_at_one():
    model, texts = TableModel(random_table(4), 3), list(product(range(3), repeat=3))
    lane = lane_of(model, texts, 3)
    decoder = decoder_of(lane, 99)
    for _ in range(20):
        draw_text(decoder)
    assert {decoder.futures.of(node) for node in decoder.futures.probs} == {1.0}
    lane.close()


def test_the_trace_says_what_was_learned():
    trace = lane_of(BITS, LANGUAGE, 3, chooser=Script([0, 0, 0, 1, 0, 1]), samples=2).run()
    scores = [e for s in trace.steps for e in s.of(Measure) if e.name == "allowed future"]
    assert [e.total for e in scores] == pytest.approx([0.505, 0.01, 0.1, 1.0, 0.505, 0.01, 1.0, 1.0, 1.0])
    shares = [(e.parts["masked"], e.parts["learned"]) for e in scores if e.parts]
    assert shares[0] == pytest.approx((0.5, 0.005 / 0.505))  # the dossier's .00990
    assert shares[4] == pytest.approx((0.5, 0.5 / 0.505)) and shares[1] == pytest.approx((1.0, 1.0))
    notes = [e.text for s in trace.steps for e in s.of(Note)]
    assert notes[0] == "Text 1: 0 dead ends so far; of what the model would draw, at most 0.505 is allowed."
    assert tuple(trace.output()) == (1, 0, 1)


def test_a_beginning_that_leads_nowhere_is_left_and_not_taken_again():
    """The grammar allows 0, and then a token that the model never writes."""
    model = TableModel(lambda past: [0.5, 0.5, 0.0], 3)
    trace = lane_of(model, [(0, 2), (1, 1)], 2, chooser=Script([0, 1, 1, 1, 1]), samples=2).run()
    rejected = [e.reason for s in trace.steps for e in s.of(Verdict) if e.status == "rejected"]
    assert rejected == ["nothing that is allowed can follow"] and trace.output() == [1, 1]


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_of_treecoder_writes_what_the_grammar_allows(decoder):
    model = TableModel(random_table(7, 4), 4, words=["a", "b", "c", "d"])
    texts = [(0, 1, 2, 3), (0, 1, 3, 3), (2, 2, 2, 2), (3, 0, 0, 1)]
    for seed in range(3):
        given = {"decoder": decoder, "rollouts": 16}
        trace = lane_of(model, texts, 4, "treecoder", seed=seed, **given).run()
        assert tuple(trace.output()) in texts
        nodes = trace.nodes()
        kept = {t[:n] for t in texts for n in range(5)}
        for node in nodes:
            path = []
            while node >= 1:
                node, token = nodes[node]
                path.append(token)
            assert tuple(path[::-1]) in kept


def test_a_typed_grammar_reaches_treecoder_and_asap():
    model = TableModel(random_table(7, 3), 3, words=["a", "b", "c"])
    for strategy in ("treecoder", "asap"):
        given = {"constraint": "regex", "constraint_text": "(ab|ca)c"}
        trace = Lane(strategy, [0], {"target": model}, given, 0, Limits(3)).run()
        assert trace.text() in ("abc", "cac")
