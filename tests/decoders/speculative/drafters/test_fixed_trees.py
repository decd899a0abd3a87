"""What a draft looks like: grown trees on a worked example, copies that share a node, pruned paths."""

import pytest
import torch

from decoders.chooser import Script
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.speculative.drafters.draft_model import DRAFT_MODEL, at_temperature
from decoders.speculative.drafters.dynamic_trees import best_paths, best_slots, expand_and_rerank, slots_above
from decoders.speculative.drafters.fixed_trees import largest, widths
from decoders.speculative.interfaces import drafted
from decoders.trace.events import Forward, Verdict
from decoders.trace.scores import Measure, Rank


def table(tokens: tuple[int, ...]) -> list[float]:
    """The example of DySpec and OPT-Tree: .6 .3 .1 at the root, .8 .1 .1 after a, .5 .4 .1 after b."""
    drafted = tokens[1:]
    return [[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.4, 0.3, 0.3]][drafted[-1]] if drafted else [0.6, 0.3, 0.1]


def grown(shape, temperature: float, chooser=None):
    """(paths of the draft in order, the lane, the draft)."""
    model = TableModel(table, 3)
    lane = Lane(
        "speculation",
        [0],
        {"target": model, "draft": model},
        {"temperature": temperature or 1.0},
        limits=Limits(16),
        chooser=chooser,
    )
    draft = drafted(DRAFT_MODEL, shape).propose(lane)
    name = {n: "".join("abc"[t] for t in lane.tree.text(n)[1:]) for n in draft.nodes}
    return [name[n] for n in draft.nodes], lane, draft


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_best_slot_is_filled_next(temperature):
    """Draws forced to the most likely token that is left: DySpec's first six nodes."""
    paths, _, _ = grown(best_slots(6, temperature), temperature, Script([0, 0, 0, 1, 0, 0]))
    assert paths == ["a", "aa", "aaa", "b", "aaaa", "aaaaa"]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, {"a"}),
        (4, {"a", "aa", "aaa", "aaaa"}),
        (5, {"a", "aa", "aaa", "aaaa", "b"}),
        (8, {"a", "aa", "aaa", "aaaa", "b", "aaaaa", "aaaaaa", "ba"}),
    ],
)
def test_the_best_paths_are_those_of_the_largest_value(count, expected):
    paths, _, _ = grown(
        best_paths(count, 6, 0.0), 0.0
    )  # seven levels deep aaaaaaa, .157, would come before ba, .15
    assert set(paths) == expected
    assert all(path[:-1] in expected or len(path) == 1 for path in paths)


@pytest.mark.parametrize(("delta", "expected"), [(0.4, {"a", "aa", "b"}), (0.3, {"a", "aa", "aaa"})])
def test_a_level_that_adds_too_little_is_the_last_one(delta, expected):
    """The sums of the three largest values are 1, 1.38 and 1.464."""
    assert set(grown(best_paths(3, 12, delta), 0.0)[0]) == expected


def test_what_each_level_added_is_told_beside_its_limit():
    model, parameters = TableModel(table, 3), {"budget": 3, "max_depth": 12, "delta": 0.3}
    trace = Lane("opt_tree", [0], {"target": model, "draft": model}, parameters, limits=Limits(12)).run()
    told = [e for e in trace.steps[0].of(Measure) if e.name == "gain of the level"]
    assert [e.total for e in told] == pytest.approx([1.0, 0.38, 0.084])
    assert {e.limit for e in told} == {0.3}


def test_what_is_ranked_out_is_pruned_and_told():
    paths, lane, draft = grown(expand_and_rerank(2, 3, 4), 0.0)
    assert paths == ["a", "b", "aa", "aaa"] and len(draft.nodes) == 4
    pruned = [e for e in lane.events if isinstance(e, Verdict)]
    assert len(pruned) == 2 + 4 + 4 - 4 and {e.status for e in pruned} == {"pruned"}
    assert set(draft.children[draft.root]) == set(draft.nodes[:2])


def test_one_child_a_level_is_a_greedy_chain():
    assert grown(expand_and_rerank(1, 4, 4), 0.0)[0] == ["a", "aa", "aaa", "aaaa"]


def test_equal_draws_share_a_node_and_are_counted():
    """Three chains of two tokens: a a b, then two draws below a and one below b."""
    shape = widths([3, 1], 1.0, replacement=True)
    paths, lane, draft = grown(shape, 1.0, Script([0, 0, 1, 2, 2, 0]))
    assert paths == ["a", "b", "ac", "ba"]
    a, b, ac, ba = draft.nodes
    assert draft.draws == {draft.root: [a, a, b], a: [ac, ac], b: [ba]}


def test_slots_are_filled_in_order_of_their_worth():
    """The worth of a slot is at most that of the slot it came from, so what is filled is never worth more
    than what was filled before.
    """
    _, lane, draft = grown(best_slots(12, 0.0), 0.0)
    worth, used = {draft.root: 1.0}, {}
    filled = []
    for node in draft.nodes:
        parent = lane.tree.parents[node]
        left = 1.0 - used.get(parent, 0.0)
        filled.append(worth[parent] * left)
        worth[node] = worth[parent] * draft.probability[node]
        used[parent] = used.get(parent, 0.0) + draft.probability[node]
    assert all(a >= b - 1e-12 for a, b in zip(filled, filled[1:], strict=False))


def test_what_a_slot_was_worth_is_told_with_the_slots_that_it_opened():
    model = TableModel(table, 3)
    models, parameters = {"target": model, "draft": model}, {"budget": 4, "draft_temperature": 1.0}
    trace = Lane("dyspec", [0], models, parameters, limits=Limits(12)).run()
    told = [e for e in trace.steps[0].of(Rank) if e.name == "slot"]
    assert [e.total for e in told] == pytest.approx([1.0, 0.6, 0.48, 0.4])
    assert told[0].parts == pytest.approx({"below": 0.6, "beside": 0.4})
    assert told[3].parts == pytest.approx({"below": 0.3, "beside": 0.1})


def test_the_slots_that_stay_open_are_those_of_the_worked_example():
    """DySpec's example, six pops: what is popped never rises, and the heap holds seven slots afterwards."""
    model = TableModel(table, 3)
    models, parameters = {"target": model, "draft": model}, {"budget": 6, "draft_temperature": 1.0}
    trace = Lane("dyspec", [0], models, parameters, limits=Limits(16)).run()
    told = [e for e in trace.steps[0].of(Rank) if e.name == "slot"]
    popped = [e.total for e in told]
    assert popped == pytest.approx([1.0, 0.6, 0.48, 0.4, 0.384, 0.3072])
    left = sorted(value for e in told for value in e.parts.values())
    for value in popped[1:]:
        left.remove(min(left, key=lambda open_: abs(open_ - value)))
    assert left[::-1] == pytest.approx([0.3, 0.24576, 0.12, 0.1, 0.096, 0.0768, 0.06144])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_a_threshold_at_the_last_worth_fills_the_same_slots_level_by_level(temperature, count):
    last = [1.0, 0.6, 0.48, 0.4, 0.384, 0.3072][count - 1] - 1e-6
    best, *_ = grown(best_slots(count, temperature), temperature, Script([0, 0, 0, 1, 0, 0][:count]))
    chosen = [1 if path == "b" else 0 for path in sorted(best, key=len)]  # as they come level by level
    shape = slots_above(last, 100, temperature)
    paths, lane, draft = grown(shape, temperature, Script(chosen))
    assert paths == sorted(best, key=len) and len(paths) == count
    assert sum(isinstance(e, Forward) for e in lane.events) == max(map(len, paths))  # one for each level


def test_with_a_threshold_no_slot_that_is_worth_less_is_filled_and_none_that_is_worth_more_stays_open():
    torch.manual_seed(1)
    for _ in range(20):
        rows = {}
        target = TableModel(lambda t, rows=rows: rows.setdefault(t, torch.rand(4).pow(3).tolist()), 4)
        parameters = {"budget": 128, "threshold": 0.1, "draft_temperature": 1.0, "temperature": 1.0}
        models = {"target": target, "draft": target}
        trace = Lane("dyspec", [0], models, parameters, limits=Limits(12)).run()
        for step in trace.steps:
            told = [e for e in step.of(Rank) if e.name == "slot"]
            worth = sorted(e.total for e in told)
            opened = sorted([1.0] * bool(told) + [v for e in told for v in e.parts.values() if v >= 0.1])
            assert worth == pytest.approx(opened)


def test_a_threshold_stops_at_the_budget():
    model = TableModel(table, 3)
    parameters = {"budget": 3, "threshold": 0.01, "draft_temperature": 1.0}
    lane = Lane("dyspec", [0], {"target": model, "draft": model}, parameters, limits=Limits(12))
    lane.advance()
    assert lane.trace.costs.per_step_drafted[0] == 3
    lane.close()


def test_the_worth_of_the_best_paths_is_that_of_the_worked_example():
    """OPT-Tree's example: the expected number of accepted tokens for one to eight nodes."""
    expected = [0.6, 1.08, 1.464, 1.7712, 2.0712, 2.31696, 2.51357, 2.66357]
    found = []
    for count in range(1, 9):
        _, lane, draft = grown(best_paths(count, 6, 0.0), 0.0)  # as deep as the example
        worth = {draft.root: 1.0}
        for node in draft.nodes:  # parents come first, so the tree is closed
            worth[node] = worth[lane.tree.parents[node]] * draft.probability[node]
        assert len(draft.nodes) == count
        found.append(sum(worth.values()) - 1.0)
    assert found == pytest.approx(expected, abs=1e-5)


def test_no_slot_is_opened_behind_the_last_token():
    model = TableModel(table, 3)
    trace = Lane("dyspec", [0], {"target": model, "draft": model}, {"budget": 4}, limits=Limits(2)).run()
    assert all("below" not in e.parts for e in trace.steps[0].of(Rank) if e.name == "slot")


@pytest.mark.parametrize(
    ("temperature", "drafts", "power"),
    [(0.0, 0.5, 2.0), (0.0, 0.0, 1.0), (0.5, 0.0, 2.0), (0.5, 1.0, 1.0), (1.0, 0.5, 2.0)],
)
def test_the_draft_has_a_temperature_of_its_own_or_the_target_s(temperature, drafts, power):
    model = TableModel(table, 3)
    parameters = {"temperature": temperature, "draft_temperature": drafts, "budget": 1}
    lane = Lane("dyspec", [0], {"target": model, "draft": model}, parameters, limits=Limits(8))
    source = at_temperature(parameters)
    law = torch.tensor([0.6, 0.3, 0.1]) ** power
    assert source.scores(lane, [0])[0].softmax(-1).tolist() == pytest.approx((law / law.sum()).tolist())


def test_a_colder_draft_makes_the_tree_deeper():
    model = TableModel(table, 3)
    deepest = []
    for drafts in (1.0, 0.3):
        parameters = {"budget": 8, "draft_temperature": drafts}
        lane = Lane("dyspec", [0], {"target": model, "draft": model}, parameters, limits=Limits(16))
        lane.advance()
        deepest.append(max(lane.tree.depths))
        lane.close()
    assert deepest[0] < deepest[1]


def test_a_draft_without_doubt_grows_a_chain():
    sure = TableModel(lambda tokens: [1.0, 0.0, 0.0], 3)
    models = {"target": sure, "draft": sure}
    for strategy, parameters in (
        ("dyspec", {"budget": 5}),
        ("dyspec", {"budget": 5, "threshold": 0.2}),
        ("opt_tree", {"budget": 5, "max_depth": 5}),
    ):
        lane = Lane(strategy, [0], models, {**parameters, "temperature": 1.0}, limits=Limits(12))
        lane.advance()
        assert lane.trace.costs.per_step_drafted[0] == 5 and lane.written == 6
        lane.close()


@pytest.mark.parametrize("draft_is_target", [True, False])
def test_a_draft_that_is_the_target_is_always_accepted(draft_is_target):
    """Chains of three from the target itself: every round writes four tokens, whichever verifier judges."""
    target = TableModel(table, 3)
    draft = target if draft_is_target else TableModel(lambda tokens: [0.2, 0.2, 0.6], 3)
    for verifier in ("token rejection", "block", "traversal", "K-SEQ"):
        parts = {"verifier": verifier, "depth": 3, "temperature": 1.0}
        lane = Lane("speculation", [0], {"target": target, "draft": draft}, parts, limits=Limits(40))
        rounds = len(lane.run().steps)
        assert rounds == 10 if draft_is_target else rounds > 10


def test_the_largest_values_are_those_that_a_plain_search_finds():
    torch.manual_seed(0)
    for rows, size, count in (
        (1, 10, 3),
        (2, 10, 30),
        (3, 4096, 16),
        (1, 8 * 4096, 64),
        (20, 4096, 1),
        (2, 4097, 5),
    ):
        values = torch.randn(rows, size)
        found, places = largest(values, count)
        assert torch.equal(found, values.sort(descending=True).values[:, :count])
        assert torch.equal(values.gather(1, places), found)
