"""PG-TD: the dossier's numbers, one rollout is greedy, more are never worse, caches change only the cost."""

import math
import random

import pytest

from decoders.callbacks import Callbacks
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.tree_search.mcts import Edge
from decoders.search.tree_search.pg_td import bonus
from decoders.trace.events import Note, Propose
from decoders.trace.scores import Score
from explorer.tasks import problems
from explorer.tasks.own_tests import pass_rate
from tests.helpers import tiny_models

LEAD = {"scorer": "keyword", "keywords": "b c, c b, a a"}


def run(model, prompt=(1,), new_tokens=5, seed=0, strategy="pg_td", callbacks=None, **parameters):
    asked = (strategy, list(prompt), {"target": model}, parameters, seed, Limits(max_new_tokens=new_tokens))
    return Lane(*asked, callbacks=callbacks).run()


def table(seed: int) -> TableModel:
    """Random distributions over an end and three words."""

    def row(text: tuple[int, ...]) -> list[float]:
        luck = random.Random(repr((seed, text)))
        weights = [0.05 + luck.random() ** 2 for _ in range(4)]
        return [w / sum(weights) for w in weights]

    return TableModel(row, 4, frozenset({0}), words=["<end>", " a", " b", " c"])


def of(trace, kind, name=None) -> list:
    return [e for s in trace.steps for e in s.of(kind) if name is None or e.name == name]


def best(trace) -> float:
    return max(e.total for e in of(trace, Score, "text_value"))


def test_the_dossiers_numbers():
    priors = (0.6, 0.3, 0.1)
    edges = [Edge(0, p) for p in priors]

    def scores(visits: int) -> list[float]:
        return [e.value + bonus("p-ucb", visits, e, 4.0, 10.0) for e in edges]

    assert scores(1) == [0.0, 0.0, 0.0]
    edges[0].visits, edges[0].value = 1, 0.2
    assert scores(2) == pytest.approx((1.2646, 1.0646, 0.3549), abs=1e-4)
    edges[0].visits = 2
    assert scores(3) == pytest.approx((1.1091, 1.3636, 0.4545), abs=1e-4)


def test_uct_is_the_authors_and_ucb1_the_classic_one():
    """c sqrt(ln N) / (1 + n) without the prior; c sqrt(ln N / n), every child first."""
    edge = Edge(0, 0.6)
    assert bonus("uct", 8, edge, 4.0, 10.0) == pytest.approx(4 * math.sqrt(math.log(8)))
    assert bonus("ucb1", 8, edge, 4.0, 10.0) == math.inf
    edge.visits = 3
    assert bonus("uct", 8, edge, 4.0, 10.0) == pytest.approx(math.sqrt(math.log(8)))
    assert bonus("ucb1", 8, edge, 4.0, 10.0) == pytest.approx(4 * math.sqrt(math.log(8) / 3))


@pytest.mark.parametrize("seed", range(3))
def test_one_rollout_is_greedy(seed, prompt):
    for model, start in ((table(seed), (1,)), (tiny_models.make(endings=0.5), prompt)):
        found = run(model, start, 8, rollouts=1)
        assert found.output() == run(model, start, 8, strategy="greedy").output()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"selection": "uct"},
        {"selection": "ucb1"},
        {"selection": "constant"},
        {"num_beams": 2},
        {"num_beams": 2, "test_all_beams": True},
        {"temperature": 1.0},
    ],
    ids=str,
)
def test_more_rollouts_are_never_worse_and_find_more(given):
    gained = 0.0
    for seed in range(4):
        reached = [best(run(table(seed), rollouts=n, **LEAD, **given)) for n in (1, 4, 16)]
        assert reached == sorted(reached)
        gained += reached[-1] - reached[0]
    assert gained > 0.5


def test_the_output_is_the_best_text_that_was_completed_and_of_equals_the_earliest():
    for seed in range(4):
        trace = run(table(seed), rollouts=12, **LEAD)
        values_of = {}
        for event in of(trace, Score, "text_value"):
            values_of.setdefault(event.node, event.total)
        winner = max(values_of, key=values_of.__getitem__)
        nodes, path = trace.nodes(), []
        while winner >= len(trace.prompt):
            path.append(nodes[winner][1])
            winner = nodes[winner][0]
        assert trace.output() == path[::-1]


def test_returns_add_up_and_priors_are_those_of_the_likeliest_tokens_alone():
    trace = run(table(1), rollouts=10, width=2, **LEAD)
    last = {e.node: e for e in of(trace, Score, "visits")}
    first = [e for n, e in last.items() if trace.nodes()[n][0] == 0]
    assert sum(e.total for e in first) == 10 and len(first) == 2
    assert sum(e.parts["prior"] for e in first) == pytest.approx(1.0)
    assert max(e.parts["value"] for e in first) == best(trace)


def test_without_caches_it_is_the_same_and_costs_more():
    for seed in range(3):
        cached, anew = (run(table(seed), rollouts=8, cache=cache, **LEAD) for cache in (True, False))
        assert cached.output() == anew.output() and best(cached) == best(anew)
        tokens = [trace.costs.totals()["target_tokens"] for trace in (cached, anew)]
        assert tokens[0] < tokens[1]
        proposed = [(e.parent, e.token) for e in of(cached, Propose)]
        assert len(set(proposed)) == len(proposed)


def lines_table(seed: int, answer: list[str]) -> TableModel:
    """A poor writer of list programs, a line a token: it leans to the right line, or to any other."""
    words = [
        "<end>",
        "reverse\n",
        "sort\n",
        "unique\n",
        "even\n",
        "odd\n",
        "double\n",
        "total\n",
        "largest\n",
    ]
    words += [f"{line}\n" for line in answer if f"{line}\n" not in words]

    def row(text: tuple[int, ...]) -> list[float]:
        luck, at = random.Random(repr((seed, text))), len(text) - 1
        weights = [luck.random() ** 3 for _ in words]
        weights[words.index(f"{answer[at]}\n") if at < len(answer) else 0] += 0.4
        return [w / sum(weights) for w in weights]

    return TableModel(row, len(words), frozenset({0}), words=words)


def test_programs_are_planned_by_the_tests_in_their_prompts():
    """The rate of the best program is what its prompt's examples say; greedy's is among those compared."""
    model = lines_table(0, ["sort"])
    with pytest.raises(ValueError, match="No function runs tests"):
        run(model, scorer="tests")
    gained = 0.0
    for seed, problem in enumerate(problems("list_program", 8, 3)):
        tests = Callbacks(lambda _, written, prompt=problem.prompt: pass_rate(prompt, written))
        model = lines_table(seed, problem.answer.split("\n"))
        trace = run(model, (0,), 4, rollouts=8, scorer="tests", callbacks=tests)
        greedy = run(model, (0,), 4, strategy="greedy")
        rates = [pass_rate(problem.prompt, t.text().replace("<end>", "")) for t in (trace, greedy)]
        assert best(trace) == rates[0] >= rates[1]
        gained += rates[0] - rates[1]
    assert gained > 0


def test_what_it_found_is_said():
    assert "Rollout 3" in of(run(table(0), rollouts=3, **LEAD), Note)[-1].text
    with pytest.raises(ValueError, match="needs keywords"):
        run(table(0), scorer="keyword")
