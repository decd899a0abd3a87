"""Each kind of moment on a small trace that is written by hand, and that ordinary steps have none."""

import math

import pytest

from decoders.explain.moments import sentence
from decoders.trace.costs import Costs
from decoders.trace.events import Cell, Commit, Distribution, Forward, Propose, Step, Verdict
from decoders.trace.moments import KINDS, Moments
from decoders.trace.node_index import NodeIndex
from decoders.trace.scores import Rank, ScoreName


def found(*steps: list, prompt: int = 3) -> list[list]:
    """The moments of each step; the prompt's nodes are 0 to `prompt` - 1."""
    nodes, costs = NodeIndex(range(prompt)), Costs()
    moments, made = Moments(nodes), []
    for index, events in enumerate(steps):
        step = Step(index, events)
        for event in step.of(Propose):
            nodes.add(event)
        made.append(moments.feed(step, costs.add(step)))
    return made


def told(moment) -> str:
    return sentence(moment, lambda node: f"n{node}", lambda token: f"t{token}")


def row(node: int, entropy: float, *top: list) -> Distribution:
    return Distribution(node, "target", list(top) or [[1, -0.1]], 0.1, entropy)


def beam(node: int, parent: int, rank: int) -> list:
    return [Propose(node, parent, 10 + node, -1.0, "target"), Rank(node, "sum_logprob", -1.0, rank=rank)]


def test_another_text_takes_the_lead():
    steps = [beam(3, 2, 1) + beam(4, 2, 2), beam(5, 3, 1) + beam(6, 4, 2), beam(7, 5, 2) + beam(8, 6, 1)]
    *before, [moment] = found(*steps)
    assert before == [[], []]
    assert (moment.node, moment.leaves, moment.position, moment.gone) == (4, 2, 1, 2)
    assert (
        told(moment)
        == "Another text takes the lead; it leaves the old one at token 1: “t14” instead of “t13”."
    )


def test_a_text_that_only_ends_otherwise_takes_no_lead():
    assert found(beam(3, 2, 1), beam(4, 2, 1)) == [[], []]


def test_the_first_of_a_queue_leads_a_best_first_search():
    def waits(node: int, parent: int, priority: float) -> list:
        return [
            Propose(node, parent, node, -1.0, "target"),
            Rank(node, ScoreName.PRIORITY, priority),
        ]

    steps = [waits(3, 2, -1.0) + waits(4, 2, -2.0), waits(5, 3, -1.5), waits(6, 5, -3.0), waits(7, 4, -2.5)]
    assert [[moment.node for moment in one] for one in found(*steps)] == [[], [], [4], []]


def draft(*fates: str, p: float = 0.1, q: float = 0.4) -> list:
    """A round: drafted nodes 3, 4, ... one after the other, then the target's own token."""
    nodes = range(3, 3 + len(fates))
    events = [Propose(node, node - 1, node, -0.5, "draft") for node in nodes]
    events += [Forward("target", "verify", 4, 1, 0.1, 0.1)]
    events += [
        Verdict(node, fate, *((p, q, 0.9) if fate == "rejected" else ()))
        for node, fate in zip(nodes, fates, strict=True)
    ]
    kept = [node for node, fate in zip(nodes, fates, strict=True) if fate == "accepted"]
    own = 3 + len(fates)
    parent = kept[-1] if kept else 2
    events += [Propose(own, parent, 99, -1.0, "target", 1), Verdict(own, "resampled")]
    return [*events, Commit([*kept, own], [-1.0] * (len(kept) + 1))]


def test_the_rejection_that_ended_a_round():
    [[moment]] = found(draft("accepted", "rejected", "never reached"))
    assert (moment.node, moment.position, moment.instead, moment.discarded) == (4, 2, 6, 1)
    assert moment.size == pytest.approx(0.3)
    assert told(moment) == (
        "“t4” is rejected (p .1, q .4, u .9); “n6” is written instead, and 1 drafted token after it is lost."
    )


def test_a_search_that_turns_back_says_so_once_for_a_position():
    def tried(node: int) -> list:
        reason = "nothing that is allowed can follow"
        return [Propose(node, 2, node, -1.0, "target"), Verdict(node, "rejected", reason=reason)]

    first, second = found(tried(3), tried(4))
    assert second == []
    assert told(first[0]) == "The search turns back at token 1, “t3”: nothing that is allowed can follow."


def test_a_guess_of_jacobi_iterations_is_no_dead_end():
    step = [Propose(3, 2, 7, None, "guess"), Verdict(3, "rejected"), Cell(3, 1, 7, "changed")]
    assert found(step) == [[]]


def written(*tokens: int) -> list[list]:
    """A step for each token, all of the same entropy."""
    return [
        [row(node - 1, 1.0), Propose(node, node - 1, token, -0.1, "target"), Commit([node], [-0.1])]
        for node, token in enumerate(tokens, 3)
    ]


def test_a_repetition_begins_where_six_tokens_stood_before():
    made = found(*written(*range(6), 50, *range(6), 6, 7))
    assert [len(one) for one in made] == [0] * 12 + [1, 0, 0]
    [moment] = made[12]
    assert (moment.position, moment.first) == (8, 1)
    assert told(moment) == "From token 8 on, the text repeats what it wrote from token 1 on."


def test_the_entropy_peaks_where_it_is_higher_than_ever_after_five_tokens():
    entropies = [9.0, 1.0, 1.0, 1.0, 1.0, 3.0, 10.0, 9.9]
    steps = written(*range(8))
    for events, entropy in zip(steps, entropies, strict=True):
        events[0] = row(events[0].node, entropy)
    made = found(*steps)
    assert [len(one) for one in made] == [0] * 6 + [1, 0]
    bits = 10.0 / math.log(2)
    assert told(made[6][0]) == (
        f"The target is less certain than at any earlier token: {bits:.1f} bits of entropy at “n9”."
    )


def test_a_filled_position_that_is_opened_again():
    masks = [Cell(3, 0, 0, "mask"), Cell(4, 0, 0, "mask")]
    steps = [masks, [Cell(3, 1, 7, "committed"), Cell(4, 1, 8, "candidate")], [Cell(3, 2, 7, "rejected")]]
    made = found(*steps)
    assert made[:2] == [[], []]
    assert told(made[2][0]) == "Token 1, “t7” is undone."


def test_a_jump_is_more_tokens_at_once_than_before():
    def settled(iteration: int, nodes: range) -> list:
        born = [Propose(node, node - 1, node, -0.1, "target") for node in nodes]
        cells = [Cell(node, iteration, node, "settled") for node in nodes]
        return [*born, *cells, Commit(list(nodes), [-0.1] * len(nodes))]

    made = found(settled(1, range(3, 5)), settled(2, range(5, 9)), settled(3, range(9, 12)))
    assert [[moment.count for moment in one] for one in made] == [[], [4], []]
    assert told(made[1][0]) == "4 tokens become final at once, more than in any iteration before."


@pytest.mark.parametrize(("forbidden", "count"), [(-0.2, 1), (-3.0, 0)])
def test_a_constraint_bites_where_it_forbids_the_most_likely_token(forbidden, count):
    removed = Distribution(2, "forbidden", [[5, forbidden]], 0.0, 0.5, among=9, kept=math.log(0.1))
    step = [row(2, 1.0, [5, -0.2], [6, -2.0]), removed, Propose(3, 2, 6, -2.0, "target"), Commit([3], [-2.0])]
    [made] = found(step)
    assert len(made) == count
    if made:
        assert made[0].size == pytest.approx(0.9)
        assert told(made[0]) == (
            "The constraint forbids the most likely token “t5” (p .819): “n3” is written instead."
        )


def test_tokens_with_which_a_lane_begins_are_no_moments():
    given = [Propose(3, 2, 7, None, "copied"), Commit([3], [None])]
    assert found(given, *written(*range(3))) == [[]] * 4


def test_every_kind_has_a_name_of_its_own():
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
