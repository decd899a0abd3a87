"""Trees: one draft forward a level, one target forward per round, equal to greedy and to the chain where they
must be.
"""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from tests.helpers.shipped_pair import PROMPTS, assert_same, decode, greedy, pair

SAMPLED = {"temperature": 1.0}


def events(step, kind: str) -> list:
    return [e for e in step.events if type(e).__name__ == kind]


@pytest.mark.parametrize("prompt", PROMPTS[::4])
def test_greedy_output_is_greedy_decoding(prompt):
    assert_same(decode("speculative_tree", prompt).output(), greedy(prompt), prompt)


@pytest.mark.parametrize("parameters", [{}, SAMPLED, {"temperature": 0.8, "top_p": 0.9}])
def test_widths_of_one_are_the_chain(parameters):
    for prompt in PROMPTS[:3]:
        chain = decode("speculative", prompt, {"num_assistant_tokens": 4, **parameters}, 32, seed=4)
        tree = decode("speculative_tree", prompt, {"widths": "1,1,1,1", **parameters}, 32, seed=4)
        assert tree.output() == chain.output()
        assert tree.costs.per_step_accepted == chain.costs.per_step_accepted


@pytest.mark.parametrize("parameters", [{}, SAMPLED])
def test_rounds_of_a_tree(parameters):
    widths = [3, 2, 1]
    trace = decode("speculative_tree", PROMPTS[1], {"widths": widths, **parameters}, 40, seed=1)
    depth_of = {i: i for i in range(len(trace.prompt))}
    statuses = set()
    for step in trace.steps:
        born = [e for e in events(step, "Propose") if e.source == "draft"]
        for e in events(step, "Propose"):
            depth_of[e.node] = depth_of[e.parent] + 1
        levels = {depth_of[e.node] for e in born}
        forwards = events(step, "Forward")
        assert sum(f.model == "draft" and f.scope is None for f in forwards) == len(levels)
        assert sum(f.model == "target" and f.scope is None for f in forwards) == 1
        siblings = {}
        for e in born:
            siblings.setdefault(e.parent, []).append(e)
        for group in siblings.values():
            assert [e.slot for e in group] == list(range(len(group)))
            assert len({e.token for e in group}) == len(group)
            assert {e.fill for e in group} == {"sampled without replacement" if parameters else "fixed"}
        verdicts = {v.node: v for v in events(step, "Verdict")}
        assert {e.node for e in born} <= verdicts.keys()
        path = [e.node for e in born if verdicts[e.node].status == "accepted"]
        assert len(events(step, "Commit")[0].nodes) in (len(path), len(path) + 1)
        for e in born:  # what was tested hangs on the path, and its earlier siblings were rejected
            if verdicts[e.node].status != "never reached":
                assert e.parent in path or e.parent == born[0].parent
                assert all(
                    verdicts[s.node].status == "rejected" for s in siblings[e.parent] if s.slot < e.slot
                )
        statuses |= {v.status for v in verdicts.values()}
    assert statuses == {"accepted", "rejected", "never reached", "resampled", "bonus"}


def test_the_likeliest_children_come_first_at_temperature_0():
    trace = decode("speculative_tree", PROMPTS[0], {"widths": [4, 2]}, 24)
    for step in trace.steps:
        for parent in {e.parent for e in events(step, "Propose") if e.source == "draft"}:
            row = [e.logprob for e in events(step, "Propose") if e.parent == parent and e.source == "draft"]
            assert row == sorted(row, reverse=True)


def test_dead_branches_give_their_slots_back():
    ids = pair()["target"].encode(PROMPTS[0])
    lane = Lane("speculative_tree", ids, pair(), {"widths": [4, 3, 2]}, limits=Limits(32))
    while lane.advance():
        if lane.trace.ended is None:
            assert lane.scorers["target"].used == len(ids) + lane.written - 1
            assert lane.scorers["draft"].used <= len(ids) + lane.written - 1
    assert pair()["target"].engine.cache.used == pair()["draft"].engine.cache.used == 0


def test_a_wider_tree_accepts_more():
    def accepted(widths) -> float:
        return sum(
            decode("speculative_tree", prompt, {"widths": widths}, 48).costs.metrics()[
                "mean_acceptance_length"
            ]
            for prompt in PROMPTS[:4]
        )

    assert accepted([4, 2, 1]) > accepted([1, 1, 1])


def test_a_small_support_leaves_slots_empty():
    """q has two tokens, the tree asks for three children: the third slot stays empty, and nothing is divided
    by zero.
    """
    target = TableModel(random_table(1), 3)
    draft = TableModel(lambda tokens: (0.5, 0.5, 0.0), 3)
    for parameters in ({"temperature": 1.0}, {"temperature": 0.0}):
        models = {"target": target, "draft": draft}
        trace = Lane("speculative_tree", [0], models, {"widths": [3], **parameters}, limits=Limits(8)).run()
        assert len(trace.output()) == 8
        drafted = [e for s in trace.steps for e in events(s, "Propose") if e.source == "draft"]
        assert drafted and all(e.token < 2 and e.slot < 2 for e in drafted)


def test_the_badge_and_bad_widths():
    declared = Lane(
        "speculative_tree", [0], {"target": (m := TableModel(random_table(1), 3)), "draft": m}
    ).strategy
    assert declared.badge(declared.check({})) == "lossless: equal to greedy"
    assert declared.badge(declared.check({"temperature": 1})) == "exact in distribution"
    for widths in ("", "3,0", "3,x", "17"):
        with pytest.raises(ValueError, match="widths must be whole numbers"):
            declared.check({"widths": widths})
