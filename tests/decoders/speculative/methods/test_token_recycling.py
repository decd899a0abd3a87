"""Token Recycling on the worked example, and what a warm table is worth."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.methods.token_recycling import PAPER, SMALL, recycled
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.trace.events import Commit, Forward, Propose

TINY = {"": 2, "0": 1}  # two choices, and one below the first


def lane_of(table, vocabulary: int, prompt: list[int], tokens: int) -> Lane:
    lane = Lane("token_recycling", prompt, {"target": TableModel(table, vocabulary)}, limits=Limits(tokens))
    lane.parameters = {**lane.parameters}
    return lane


def likeliest(*order: int):
    """A law of four tokens in this order of likelihood."""
    law = [0.0] * 4
    for place, token in enumerate(order):
        law[token] = (0.5, 0.3, 0.15, 0.05)[place]
    return law


def test_the_worked_round():
    """Root 2 has 3 and 1 below it, and 1 below 3; the target wants 1 after 2 and 0 after that."""
    after = {(2,): likeliest(1, 3, 0, 2), (2, 1): likeliest(0, 2, 1, 3), (2, 3): likeliest(2, 0, 1, 3)}
    lane = lane_of(lambda tokens: after.get(tokens, likeliest(3, 2, 1, 0)), 4, [2], 8)
    table = {2: [3, 1], 3: [1, 0]}
    next(rounds(lane, recycled(TINY, table), GREEDY_MATCH))
    assert [e.token for e in lane.events if isinstance(e, Propose) and e.source == "recycled"] == [3, 1, 1]
    (commit,) = (e for e in lane.events if isinstance(e, Commit))
    assert [lane.tree.tokens[n] for n in commit.nodes] == [1, 0]
    assert table[2] == [1, 3] and table[3] == [2, 0]
    assert table[1] in ([0, 2], [3, 2])  # both nodes with token 1 were seen; the later one counts
    lane.close()


@pytest.mark.parametrize(("template", "nodes"), [(SMALL, 21), (PAPER, 80)])
def test_templates_have_the_size_they_are_named_after(template, nodes):
    assert sum(template.values()) == nodes
    for path in template:
        assert not path or int(path[-1]) < template[path[:-1]]  # every node with children is a child itself


def test_an_empty_table_still_commits_one_token_a_round_and_a_warm_one_more():
    def cycle(tokens: tuple[int, ...]) -> list[float]:
        return likeliest(*((tokens[-1] + k) % 4 for k in (1, 2, 3, 0)))

    forwards, table = [], {}
    for _ in range(2):
        lane = lane_of(cycle, 4, [0], 16)
        turns = rounds(lane, recycled(SMALL, table), GREEDY_MATCH)
        while lane.more:
            next(turns)
        events = lane.events
        forwards.append(sum(isinstance(e, Forward) for e in events))
        assert all(e.nodes for e in events if isinstance(e, Commit))
        written = [lane.tree.tokens[n] for e in events if isinstance(e, Commit) for n in e.nodes]
        assert written == [(i + 1) % 4 for i in range(16)]
        lane.close()
    assert forwards[1] < forwards[0] < 16
