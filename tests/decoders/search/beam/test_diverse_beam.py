"""Diverse beam search: the worked numbers of its definition and an independent, naive implementation.

transformers 5.23 has no group beam search in its core (it loads code from the Hub for it), so there is
nothing to compare.
"""

import math
import random
from itertools import product

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.beam.hypotheses import returned
from decoders.trace.events import Forward, Verdict
from decoders.trace.scores import Rank

FIXED = TableModel(lambda past: (0.5, 0.3, 0.2), 3)


def run(model, prompt=(0,), new_tokens=2, strategy="diverse_beam", **parameters):
    return Lane(
        strategy, list(prompt), {"target": model}, parameters, limits=Limits(max_new_tokens=new_tokens)
    ).run()


def random_table(seed: int, vocabulary: int = 6) -> TableModel:
    """A table whose row depends on the whole text; its last token ends the text."""

    def row(past):
        luck = random.Random(f"{seed} {past}")
        weights = [luck.random() ** 3 + 0.01 for _ in range(vocabulary)]
        return [w / sum(weights) for w in weights]

    return TableModel(row, vocabulary, eos=frozenset({vocabulary - 1}))


def groups_of(trace) -> list[list[list[int]]]:
    """The finished texts of each group, best first."""
    nodes, found = trace.nodes(), {}
    group_of = {s.node: s.level for step in trace.steps for s in step.of(Rank) if s.level}
    ranked = [s for s in trace.steps[-1].of(Rank) if s.name == "length_penalised" and s.rank]
    for score in sorted(ranked, key=lambda s: s.rank):
        node, tokens = score.node, []
        while node >= len(trace.prompt):
            node, token = nodes[node]
            tokens.insert(0, token)
        found.setdefault(group_of[score.node], []).append(tokens)
    return [found[name] for name in sorted(found)]


def naive(model, prompt, length, beams, groups, penalty) -> list[list[tuple[tuple, float]]]:
    """Group after group over all positions (the other order of the wavefront), straight from the
    definition.
    """
    width, taken, results = beams // groups, [{} for _ in range(length)], []
    for _ in range(groups):
        live, finished = [((), 0.0)], []
        for t in range(length):
            grown = []
            for text, total in live:
                row = model.table((*prompt, *text))
                for token, p in enumerate(row):
                    grown.append(((*text, token), total + math.log(p) - penalty * taken[t].get(token, 0)))
            grown.sort(key=lambda g: -g[1])
            ends = [g for g in grown[:width] if t + 1 == length or g[0][-1] in model.eos]
            live = [] if t + 1 == length else [g for g in grown if g[0][-1] not in model.eos][:width]
            finished = sorted(finished + ends, key=lambda g: -g[1])[:width]
            for text, _ in [*ends, *live]:
                taken[t][text[-1]] = taken[t].get(text[-1], 0) + 1
            if not live or (len(finished) == width and (width == 1 or live[0][1] <= finished[-1][1])):
                break
        results.append(finished)
    return results


@pytest.mark.parametrize("seed", range(6))
def test_one_group_is_beam_search(seed):
    model = random_table(seed)
    for beams, length_penalty in product((1, 2, 4), (0.0, 1.0)):
        options = {"num_beams": beams, "length_penalty": length_penalty}
        ours = run(model, [0], 6, num_beam_groups=1, **options)
        beam = run(model, [0], 6, strategy="beam", num_return_sequences=beams, **options)
        assert returned(ours) == returned(beam)
        assert ours.output() == beam.output()


def test_one_group_is_beam_search_on_a_real_model(tiny_model):
    for prompt in ([1, 2, 3], [77, 5]):
        ours = run(tiny_model(), prompt, 20, num_beam_groups=1, length_penalty=1.0)
        assert returned(ours) == returned(
            run(tiny_model(), prompt, 20, strategy="beam", num_return_sequences=4)
        )


@pytest.mark.parametrize("seed", range(4))
def test_without_penalty_all_groups_equal_beam_search_of_the_groups_width(seed):
    model = random_table(seed)
    ours = groups_of(run(model, [0], 5, num_beams=6, num_beam_groups=3, diversity_penalty=0.0))
    beam = run(model, [0], 5, strategy="beam", num_beams=2, num_return_sequences=2, length_penalty=0.0)
    assert ours == [[tokens for tokens, _ in returned(beam)]] * 3


def test_a_second_group_changes_its_token_beyond_ln_5_3():
    threshold = math.log(5 / 3)
    assert threshold == pytest.approx(0.510826, abs=1e-6)
    for penalty, token in ((threshold - 1e-6, 0), (threshold + 1e-6, 1)):
        trace = run(FIXED, new_tokens=1, num_beams=2, num_beam_groups=2, diversity_penalty=penalty)
        assert groups_of(trace) == [[[0]], [[token]]]


def test_the_penalty_stays_in_the_running_sum():
    trace = run(FIXED, num_beams=4, num_beam_groups=2, diversity_penalty=0.6)
    assert groups_of(trace) == [[[0, 0], [1, 0]], [[0, 1], [2, 1]]]
    scores = {tuple(tokens): score for tokens, score in returned(trace)}
    assert scores[0, 1] == pytest.approx(-2.4971, abs=5e-5)
    assert scores[2, 1] == pytest.approx(-2.8134, abs=5e-5)


@pytest.mark.parametrize("seed", range(25))
def test_position_by_position_equals_group_by_group(seed):
    luck = random.Random(seed)
    groups, width = luck.choice([(2, 1), (2, 2), (3, 2), (4, 1)])
    penalty, length = luck.choice([0.2, 0.5, 1.0, 3.0]), luck.choice([1, 3, 6])
    model = random_table(100 + seed)
    trace = run(
        model, [1, 2], length, num_beams=groups * width, num_beam_groups=groups, diversity_penalty=penalty
    )
    want = naive(model, (1, 2), length, groups * width, groups, penalty)
    assert groups_of(trace) == [[list(text) for text, _ in group] for group in want]
    union = sorted((score for group in want for _, score in group), reverse=True)
    assert [score for _, score in returned(trace)] == pytest.approx(union)


def test_one_forward_serves_all_groups_and_both_sums_are_told(tiny_model):
    trace = run(tiny_model(), [4, 5, 6], 10, num_beams=4, num_beam_groups=2, diversity_penalty=2.0)
    assert [len(step.of(Forward)) for step in trace.steps] == [1] * len(trace.steps)
    told = [s for step in trace.steps for s in step.of(Rank) if s.name == "augmented_sum"]
    assert {s.level for s in told} == {"group 1", "group 2"}
    for score in told:
        assert score.parts["sum_logprob"] + score.parts["diversity"] == pytest.approx(score.total)
        assert score.parts["diversity"] == pytest.approx(
            -2.0 * round(-score.parts["diversity"] / 2.0), abs=1e-4
        )
    assert any(s.parts["diversity"] < 0 for s in told if s.level == "group 2")
    assert all(s.parts["diversity"] == pytest.approx(0.0) for s in told if s.level == "group 1")


def test_every_leaf_is_judged_in_all_groups():
    for seed in range(6):
        trace = run(random_table(seed), [0], 6, num_beams=6, num_beam_groups=3, diversity_penalty=0.7)
        nodes = {n: parent for n, (parent, _) in trace.nodes().items() if n >= len(trace.prompt)}
        judged = {v.node: v.status for step in trace.steps for v in step.of(Verdict)}
        assert set(nodes) - set(nodes.values()) <= set(judged)
        assert list(judged.values()).count("finished") == 6


def test_uneven_groups_are_one_sentence():
    with pytest.raises(ValueError, match="num_beams is 5, which 2 groups cannot share evenly"):
        run(FIXED, num_beams=5, num_beam_groups=2)
