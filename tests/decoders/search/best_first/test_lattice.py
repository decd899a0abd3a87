"""The lattice: merges make a graph without circles whose paths are counted right; else it is a search."""

import random

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.best_first import lattice as module
from decoders.search.best_first.lattice import Graph, Search
from decoders.trace.events import Note, Propose, Verdict


def model(seed: int, v: int = 4, order: int = 1) -> TableModel:
    """Words that depend on the last `order` ones; token 0 ends a text."""

    def row(text: tuple[int, ...]) -> list[float]:
        luck = random.Random(repr((seed, text[-order:])))
        weights = [0.1 + luck.random() for _ in range(v)]
        return [w / sum(weights) for w in weights]

    return TableModel(row, v, frozenset({0}))


def searched(monkeypatch, seed: int, new_tokens: int = 7, **parameters) -> tuple[Lane, Search]:
    """A finished lane and the search that it made."""
    made: list[Search] = []

    class Kept(Search):
        def __init__(self, lane: Lane):
            super().__init__(lane)
            made.append(self)

    monkeypatch.setattr(module, "Search", Kept)
    given = {"ngram": 2, "k_best": 3} | parameters
    limits = Limits(max_new_tokens=new_tokens)
    lane = Lane("lattice", [1], {"target": model(seed)}, given, limits=limits)
    lane.run()
    return lane, made[0]


def every_path(graph: Graph, node: int) -> list[list[int]]:
    """All paths to a node, without any memory. Endless if the graph had a circle."""
    node = graph.now(node)
    if node == graph.root:
        return [[]]
    parents = {graph.now(p) for p in graph.before[node]}
    return [[*path, node] for parent in parents for path in every_path(graph, parent)]


def merged(lane: Lane) -> list[Verdict]:
    return [e for s in lane.trace.steps for e in s.of(Verdict) if e.status == "merged"]


@pytest.mark.parametrize("merge", ["zip", "rcb"])
def test_paths_are_counted_as_by_enumeration_and_there_is_no_circle(monkeypatch, merge):
    found = 0
    for seed in range(8):
        lane, search = searched(monkeypatch, seed, merge=merge, max_forwards=40)
        ends = {search.graph.now(node) for node in search.finished}
        for node in ends:
            paths = every_path(search.graph, node)
            assert search.graph.count(node) == len(paths)
            assert sorted(search.graph.paths(node, 10_000)) == sorted(paths)
        found += len(merged(lane))
    assert found > 10


def test_paths_beyond_the_limit_are_counted_and_said(monkeypatch):
    said = 0
    for seed in range(8):
        lane, search = searched(monkeypatch, seed, max_forwards=24)
        ends = {search.graph.now(node) for node in search.finished}
        paths = [path for node in ends for path in every_path(search.graph, node)]
        longer = sum(len(path) > 7 for path in paths)
        assert module.too_long(search) == (longer, len(paths))
        notes = [e.text for s in lane.trace.steps for e in s.of(Note)]
        want = f"{longer:,} of {len(paths):,} paths are longer than the limit of 7 new tokens"
        assert any(note.startswith(want) for note in notes) == (longer > 0)
        assert len(lane.trace.output()) <= 7
        said += longer > 0
    assert said


def test_zip_makes_one_of_the_common_ending():
    """Paths "x a b c" and "y a b c": five nodes, two paths."""
    tree = {"x": 1, "a": 2, "b": 3, "c": 4, "y": 5, "a'": 6, "b'": 7, "c'": 8}
    graph = Graph(0)
    for node, parent in ((1, 0), (2, 1), (3, 2), (4, 3), (5, 0), (6, 5), (7, 6), (8, 7)):
        graph.link(node, parent)
    for new, old in (("c'", "c"), ("b'", "b"), ("a'", "a")):
        graph.absorb(tree[new], tree[old])
    assert graph.count(8) == graph.count(4) == 2
    paths = graph.paths(4, 10)
    assert sorted(paths) == [[1, 2, 3, 4], [5, 2, 3, 4]]
    assert len({n for path in paths for n in path}) == 5


def test_merged_texts_end_with_the_same_tokens_and_are_about_as_long(monkeypatch):
    for merge, many in (("rcb", 1), ("zip", 1)):
        lane, _ = searched(monkeypatch, 3, new_tokens=9, merge=merge, max_forwards=60)
        tokens = lane.trace.nodes()
        assert len(merged(lane)) >= many
        for event in merged(lane):
            assert tokens[event.node][1] == tokens[event.into][1]
            assert abs(lane.tree.depths[event.node] - lane.tree.depths[event.into]) < 5


def test_one_candidate_is_greedy_and_greedy_is_always_the_first_text(monkeypatch):
    for seed in range(5):
        greedy = Lane("greedy", [1], {"target": model(seed)}, limits=Limits(max_new_tokens=7)).run().output()
        lane, search = searched(monkeypatch, seed, k_best=1, max_forwards=100)
        assert lane.trace.output() == greedy
        _, search = searched(monkeypatch, seed, max_forwards=40, merge="never")
        assert search.lane.tree.text(search.finished[0])[1:] == greedy or any(
            search.lane.tree.text(node)[1:] == greedy for node in search.finished
        )


def test_without_merges_every_path_is_a_text_of_its_own(monkeypatch):
    lane, search = searched(monkeypatch, 1, merge="never", max_forwards=40)
    assert not merged(lane)
    assert sum(search.graph.count(node) for node in search.finished) == len(set(search.finished))


def test_merges_hold_more_texts_for_the_same_work(monkeypatch):
    counts = {}
    for merge in ("never", "zip"):
        _, search = searched(monkeypatch, 2, new_tokens=10, merge=merge, max_forwards=60)
        ends = {search.graph.now(node) for node in search.finished}
        counts[merge] = sum(search.graph.count(node) for node in ends)
    assert counts["zip"] > 2 * counts["never"]


def test_the_budget_is_kept_and_the_note_counts(monkeypatch):
    lane, search = searched(monkeypatch, 4, max_forwards=25)
    assert search.spent == 25
    notes = [n.text for s in lane.trace.steps for n in s.of(Note)]
    assert any(note.startswith("25 forwards: ") and "nodes merged." in note for note in notes)


def test_a_text_that_is_not_finished_in_time_is_finished_greedily(monkeypatch):
    endless = TableModel(lambda text: [0.4, 0.3, 0.3], 3)
    lane = Lane("lattice", [1], {"target": endless}, {"max_forwards": 2}, limits=Limits(max_new_tokens=6))
    lane.run()
    assert len(lane.trace.output()) == 6
    assert any("no text is finished" in n.text for s in lane.trace.steps for n in s.of(Note))


def test_tokens_that_differ_by_case_or_blanks_are_passed_over():
    words = ["the", " The", "THE ", "dog"]
    spoken = TableModel(lambda text: [0.4, 0.3, 0.2, 0.1], 4, words=words)
    lane = Lane("lattice", [3], {"target": spoken}, {"max_forwards": 1}, limits=Limits(max_new_tokens=4))
    lane.advance()
    assert [e.token for e in lane.trace.steps[0].of(Propose)] == [0, 3]


def opened(lane: Lane) -> list[int]:
    """The nodes in the order in which a forward opened them."""
    born = [e.parent for s in lane.trace.steps for e in s.of(Propose) if e.slot == 0]
    return list(dict.fromkeys(born))


def test_one_step_at_a_time_is_plain_best_first_search(monkeypatch):
    """Each time the waiting node of the highest priority is opened."""
    lane, search = searched(monkeypatch, 5, merge="never", max_forwards=20, expand="one step")
    waiting, tree = {lane.tree.trunk - 1}, lane.tree
    finished = set(search.finished)
    for node in opened(lane)[:20]:
        best = max(waiting, key=lambda n: (search.priority(n), -n))
        assert search.priority(node) == pytest.approx(search.priority(best))
        waiting.remove(node)
        children = [n for n in search.total if tree.parents[n] == node and n != lane.tree.trunk - 1]
        waiting |= {n for n in children if n not in finished}


def test_forwards_that_are_kept_for_ends_end_more_texts(monkeypatch):
    """All of them kept is depth-first completion, none plain best-first search."""
    given = {"max_forwards": 40, "k_best": 3, "merge": "never", "new_tokens": 14}
    counts = {}
    for share in (0.0, 0.5, 1.0):
        _, search = searched(monkeypatch, 6, expand=module.THEN_ENDS, reserved=share, **given)
        counts[share] = len(search.finished)
        assert search.spent == 40 and search.single == round((1 - share) * 40)
    ends = {how: len(searched(monkeypatch, 6, expand=how, **given)[1].finished) for how in module.FRONTIERS}
    assert counts[0.0] == ends[module.ONE_STEP] and counts[1.0] == ends[module.TO_THE_END]
    assert counts[0.5] == ends[module.THEN_ENDS] and len(set(counts.values())) > 1
