"""Graph decoding: the automaton, Yen's paths against hand-worked graphs and exhaustive scoring."""

import itertools
import math
import random

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.best_first.graph_decoding import outputs_of
from decoders.search.best_first.k_shortest_paths import Automaton, Offer, PathSearch, Prefix, Searched
from decoders.trace import trace as traces
from decoders.trace.events import Commit, Forward, Note, Propose, Verdict
from decoders.trace.scores import Rank
from decoders.trace.trace import Trace

EOS = 0
MODEL_WIDE = {"softmax": "model-wide", "divide_by_length": False}


def cut(text: str) -> list[int]:
    return [ord(c) - 97 for c in text]


def table(seed: int, vocabulary: int = 5) -> TableModel:
    """Random rows that depend on the whole text; token 0 ends it."""

    def row(past):
        luck = random.Random(hash((seed, *past)))
        weights = [luck.expovariate(1.0) for _ in range(vocabulary)]
        return [w / sum(weights) for w in weights]

    return with_letters(TableModel(row, vocabulary, eos=frozenset({EOS})))


def with_letters(model: TableModel) -> TableModel:
    model.cut = cut
    return model


def run(model, outputs, new_tokens: int = 12, prompt=(1,), **parameters) -> Trace:
    typed = " | ".join(f'"{output}"' for output in outputs)
    asked = {"outputs": typed, **parameters}
    return Lane("graph_decoding", list(prompt), {"target": model}, asked, limits=Limits(new_tokens)).run()


def paths(trace: Trace) -> list[tuple[str, float]]:
    """(output, cost) of the paths, by their last ranks."""
    nodes, ranks = trace.nodes(), {}
    for score in (e for step in trace.steps for e in step.of(Rank) if e.name == "path"):
        ranks[score.node] = (score.rank, score.total)
    found = []
    for node, (rank, cost) in ranks.items():
        text = []
        while node >= len(trace.prompt):
            node, token = nodes[node]
            text.append(token)
        found.append((rank, "".join(chr(97 + t) for t in text[:0:-1]), cost))
    return [(text, cost) for _, text, cost in sorted(found)]


def exact(model: TableModel, outputs, past=(1,)) -> list[tuple[str, float]]:
    """-log p of each output with its end, cheapest first."""
    costs = []
    for output in outputs:
        text, cost = [], 0.0
        for token in [*cut(output), EOS]:
            cost -= math.log(model.table((*past, *text))[token])
            text.append(token)
        costs.append((output, cost))
    return sorted(costs, key=lambda pair: pair[1])


# ---- automaton and paths -------------------------------------------------------------------------------


@pytest.fixture
def worked():
    """S-A 1, S-B 2, A-T 3, A-B .5, B-T 1: states 1 2 3 and the end 0, tokens name the states they lead to."""
    weights = {(1, 2): 1.0, (1, 3): 2.0, (2, 0): 3.0, (2, 3): 0.5, (3, 0): 1.0}
    edges = {s: {to: to for one, to in weights if one == s} for s in (1, 2, 3)} | {0: {}}
    asked = []

    def expand(prefixes):
        asked.append([p.tokens for p in prefixes])
        return [[Offer(t, weights[p.state, t]) for t in edges[p.state]] for p in prefixes]

    return PathSearch(Automaton(edges, 1, 0), expand, lambda prefix, offer: 0), asked


def test_the_worked_graph_gives_its_three_paths_in_order(worked):
    search, _ = worked
    found = [e for e in search.k_best(Prefix(1, 0.0, 0), 9) if isinstance(e, Prefix)]
    assert [(p.tokens, p.cost) for p in found] == [((2, 3, 0), 2.5), ((3, 0), 3.0), ((2, 0), 4.0)]


def test_no_search_is_made_twice_and_none_where_all_edges_are_blocked(worked):
    search, _ = worked
    made = [
        (e.root.tokens, e.blocked) for e in search.k_best(Prefix(1, 0.0, 0), 9) if isinstance(e, Searched)
    ]
    assert len(made) == len(set(made))
    assert made == [((), frozenset()), ((), frozenset({2})), ((2,), frozenset({3}))]


def test_graph_beam_tries_exactly_that_many_edges(worked):
    search, _ = worked
    tried = []
    search.tried = lambda prefix, offer: tried.append((prefix.state, offer.token)) or 0
    search.graph_beam = 1
    assert search.best(Prefix(1, 0.0, 0)).tokens == (2, 3, 0)  # greedy: A, B, T
    assert tried == [(1, 2), (2, 3), (3, 0)]
    search.graph_beam = 2
    tried.clear()
    search.best(Prefix(1, 0.0, 0))
    assert len(tried) == 5


def language(automaton: Automaton) -> set[tuple[int, ...]]:
    found, stack = set(), [(automaton.start, ())]
    while stack:
        state, tokens = stack.pop()
        if state == automaton.end:
            found.add(tokens)
        stack += [(to, (*tokens, token)) for token, to in automaton.edges[state].items()]
    return found


def rights(automaton: Automaton, state: int) -> frozenset:
    return frozenset(language(Automaton(automaton.edges, state, automaton.end)))


def test_the_automaton_holds_the_outputs_and_is_minimal():
    luck = random.Random(0)
    for _ in range(60):
        outputs = {
            tuple(luck.randrange(1, 4) for _ in range(luck.randint(1, 4))) for _ in range(luck.randint(1, 9))
        }
        small, trie = (Automaton.of(sorted(outputs), EOS, merge) for merge in (True, False))
        assert language(small) == language(trie) == {(*output, EOS) for output in outputs}
        futures = [rights(small, state) for state in small.edges]
        assert len(futures) == len(set(futures))  # no two states could be one
        prefixes = {output[:i] for output in outputs for i in range(len(output) + 1)}
        assert len(trie.edges) == len(prefixes) + 1
        order = {state: i for i, layer in enumerate(small.layers) for state in layer}
        assert all(order[s] < order[to] for s, below in small.edges.items() for to in below.values())


# ---- the strategy --------------------------------------------------------------------------------------


def test_on_a_trie_with_the_full_softmax_paths_are_those_of_exhaustive_scoring():
    for seed in range(25):
        luck, model = random.Random(seed), table(seed)
        outputs = sorted({"".join(luck.choice("bcde") for _ in range(luck.randint(1, 4))) for _ in range(9)})
        trace = run(model, outputs, k_best=32, graph="trie", **MODEL_WIDE)
        want = exact(model, outputs)
        assert [text for text, _ in paths(trace)] == [text for text, _ in want]
        assert [c for _, c in paths(trace)] == pytest.approx([c for _, c in want])
        assert trace.output() == [*cut(want[0][0]), EOS]


def test_a_merged_graph_may_lose_the_best_path_and_says_so():
    """Where "bd" and "cd" meet only one history lives on: the cheaper at the meeting, not the better one."""
    rows = {"": (0, 0, 0.6, 0.4), "c": (0, 0.98, 0.01, 0.01), "d": (0, 0.98, 0.01, 0.01)}
    rows |= {"cb": (0.1, 0.3, 0.3, 0.3), "db": (0.9, 0.1, 0, 0)}
    model = with_letters(
        TableModel(
            lambda past: rows.get("".join(chr(97 + t) for t in past[1:]), (1, 0, 0, 0)),
            4,
            eos=frozenset({EOS}),
        )
    )
    outputs = ["cb", "db"]
    assert exact(model, outputs)[0][0] == "db"
    merged, trie = (
        run(model, outputs, k_best=1, graph=graph, **MODEL_WIDE) for graph in ("automaton", "trie")
    )
    assert paths(merged) == [("cb", pytest.approx(-math.log(0.6 * 0.98 * 0.1)))]
    assert paths(trie) == [("db", pytest.approx(-math.log(0.4 * 0.98 * 0.9)))]
    assert [v.status for s in merged.steps for v in s.of(Verdict)].count("merged") == 1
    both = run(model, outputs, k_best=2, **MODEL_WIDE)  # the second path shows the gap
    assert paths(both)[0][0] == "db" and both.output() == [*cut("db"), EOS]
    assert any("Path 2 is the cheapest" in note.text for step in both.steps for note in step.of(Note))


@pytest.mark.parametrize(("softmax", "order"), [("local", ["be", "cd"]), ("model-wide", ["cd", "be"])])
def test_label_bias_flips_the_order(softmax, order):
    """Root: b .6, c .4; after b only e, probability .05; after c only d, .9."""
    rows = {"": (0, 0.6, 0.4, 0, 0), "b": (0.95, 0, 0, 0, 0.05), "c": (0.1, 0, 0, 0.9, 0)}
    shift = {key: (row[0], 0, *row[1:]) for key, row in rows.items()}
    model = with_letters(
        TableModel(
            lambda past: shift.get("".join(chr(97 + t - 1) for t in past[1:]), (1, 0, 0, 0, 0, 0)),
            6,
            eos=frozenset({EOS}),
        )
    )
    outputs = ["cf", "de"]  # one letter on: token 1 is the prompt
    trace = run(model, outputs, k_best=2, softmax=softmax, divide_by_length=False)
    found = [("".join(chr(ord(c) - 1) for c in text), math.exp(-cost)) for text, cost in paths(trace)]
    want = {"local": {"be": 0.6, "cd": 0.4}, "model-wide": {"be": 0.03, "cd": 0.36}}[softmax]
    assert [text for text, _ in found] == order
    assert dict(found) == {text: pytest.approx(p) for text, p in want.items()}


def test_all_paths_are_found_each_once_at_growing_cost_on_a_trie():
    outputs = ["".join(word) for n in (1, 2, 3) for word in itertools.product("bc", repeat=n)]
    for softmax in ("local", "model-wide"):
        trace = run(table(3), outputs, k_best=32, graph="trie", softmax=softmax)
        found = paths(trace)
        assert sorted(text for text, _ in found) == sorted(outputs)
        costs = [cost for _, cost in found]
        assert costs == sorted(costs)


def test_a_whole_path_is_divided_by_its_tokens_and_two():
    model = table(4)
    (whole,) = paths(run(model, ["bcd"], k_best=1, softmax="model-wide", divide_by_length=True))
    assert whole == ("bcd", pytest.approx(exact(model, ["bcd"])[0][1] / 5))


def test_the_language_can_be_fixed_and_costs_nothing():
    model, outputs = table(5), ["bcd", "bce", "dcd", "dce", "b"]
    trace = run(model, outputs, begin_with='"d"', k_best=9, graph="trie", **MODEL_WIDE)
    assert sorted(text for text, _ in paths(trace)) == ["dcd", "dce"]
    offset = -math.log(model.table((1,))[3])
    want = exact(model, ["dcd", "dce"])
    assert [c for _, c in paths(trace)] == pytest.approx([c - offset for _, c in want])
    assert "forced" in {v.status for step in trace.steps for v in step.of(Verdict)}


def test_what_a_lane_begins_with_is_the_beginning_of_the_output(tiny_model):
    model = tiny_model("llama")
    asked = {"outputs": '"abc" | "abd" | "cbc"', "k_best": 3}
    begin = {"tokens": model.cut("ab")}
    lane = Lane("graph_decoding", [1, 2], {"target": model}, asked, limits=Limits(9), begin=begin)
    assert lane.run().text().partition("<")[0] in ("abc", "abd")
    other = Lane("graph_decoding", [1, 2], {"target": model}, asked, limits=Limits(9), begin={"tokens": [7]})
    assert other.run().ended.startswith("No output of at most 8 tokens begins as asked")


def test_one_forward_serves_all_states_that_wait_for_no_other(tiny_model):
    trace = run_typed(tiny_model("llama"), "#5|#6|#7|#8", k_best=1)
    assert sum(len(step.of(Forward)) for step in trace.steps) == 2  # the root, then the end of all four


def run_typed(model, outputs: str, prompt=(1, 2, 3), new_tokens: int = 12, **parameters) -> Trace:
    asked = {"outputs": outputs, **parameters}
    return Lane("graph_decoding", list(prompt), {"target": model}, asked, limits=Limits(new_tokens)).run()


@pytest.mark.parametrize(
    "extra", [{}, {"softmax": "model-wide", "graph_beam": 2}, {"graph": "trie", "k_best": 8}]
)
def test_its_traces_are_well_formed_and_every_leaf_is_judged(tiny_model, extra):
    model = tiny_model("llama")
    trace = run_typed(model, '"abc" | "abd" | "cbc" | "cbd" | "b" | "bc"', **extra)
    assert traces.malformed((e for s in trace.steps for e in s.events), 3) is None
    nodes = trace.nodes()
    status = {v.node: v.status for step in trace.steps for v in step.of(Verdict)}
    path = [n for step in trace.steps for c in step.of(Commit) for n in c.nodes]
    leaves = {e.node for s in trace.steps for e in s.of(Propose)} - {parent for parent, _ in nodes.values()}
    assert leaves <= status.keys()
    assert not {status.get(n) for n in path} & {"pruned", "merged", "rejected"}
    assert trace.text().partition("<")[0] in ("abc", "abd", "cbc", "cbd", "b", "bc")
    assert trace.ended == "The model wrote its end-of-text token."
    assert model.engine.cache.used == 0


def test_outputs_that_are_too_long_are_left_out(tiny_model):
    model = tiny_model("llama")
    trace = run_typed(model, '"abc" | "ab"', new_tokens=2)
    assert trace.text() == "ab" and trace.ended == "Reached max_new_tokens = 2."
    none = run_typed(model, '"abc"', new_tokens=2)
    assert none.output() == [] and none.ended == "No output fits into 2 new tokens; allow more."


def test_without_outputs_it_is_greedy_decoding(tiny_model):
    model = tiny_model("llama")
    greedy = Lane("greedy", [1, 2, 3], {"target": model}, {}, limits=Limits(9)).run()
    assert run_typed(model, "", new_tokens=9).output() == greedy.output()


def test_outputs_are_read_line_by_line_or_between_bars():
    def letters(text: str) -> list[int]:
        return [ord(c) for c in text]

    assert outputs_of('a | "b"\n\n#7 | a', letters, 300) == [(32, 97), (98,), (7,)]
    assert outputs_of(" \n ", letters, 300) == []


@pytest.mark.parametrize(
    ("outputs", "begin", "sentence"),
    [
        ("dog", "", "outputs: this model has no tokenizer"),
        ("#99", "", "there is no token #99"),
        ("#1 | #2", "#3", "no output begins with '#3'; type the beginning of one"),
    ],
)
def test_unusable_outputs_are_refused_with_a_sentence(outputs, begin, sentence):
    model = TableModel(lambda past: [0.25] * 4, 4, eos=frozenset({EOS}))
    with pytest.raises(ValueError, match=sentence):
        run_typed(model, outputs, prompt=(1,), begin_with=begin)
