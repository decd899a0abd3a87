"""The point of each example of text out of order: `SHOWS` maps its title to a check of traces."""

from collections import Counter

from decoders.trace.events import Cell
from decoders.trace.scores import Rank
from tests.helpers.trace_readings import forwards, total


def one_text_in_fewer_forwards(fast, slow, greedy):
    """The record, right in all three; many masks per forward in the first."""
    for found in (fast, slow):
        assert found.output()[: len(greedy.output())] == greedy.output()
    assert 4 * forwards(fast) < forwards(slow)


def too_low_is_wrong(leap, low, threshold):
    """Fewer forwards than with the threshold alone, and the lower tau_low, the fewer."""
    assert forwards(low) < forwards(leap) < forwards(threshold)
    assert leap.output() == threshold.output() != low.output()


def a_bound_keeps_the_text(bounded, single, whole):
    """A record, the same with one mask per forward and in far fewer; not with a block per forward."""
    assert bounded.output() == single.output() != whole.output()
    assert 2 * forwards(bounded) < forwards(single)
    assert forwards(whole) == -(-len(whole.output()) // 8)


def noise_becomes_a_sentence(flow, once, voted):
    """Positions change more than once, each step is a forward, and eight candidates share theirs."""
    cells = [c for step in flow.steps for c in step.of(Cell) if c.state == "changed"]
    changes = Counter(cell.position for cell in cells)
    assert max(changes.values()) > 1
    assert " eats the cake." in flow.text() and " the the" in once.text()
    assert (forwards(flow), forwards(once), forwards(voted)) == (17, 2, 17)  # one reads the source
    ranks = [e.rank for step in voted.steps for e in step.of(Rank) if e.name == "word_error_rate"]
    assert sorted(ranks) == list(range(1, 9))


def a_filter_saves_and_an_oracle_more(learned, oracle, plain):
    """One text in all three lanes."""
    assert learned.output() == oracle.output() == plain.output()[: len(learned.output())]
    assert 3 * forwards(learned) < forwards(plain) and 2 * forwards(oracle) < forwards(learned)


def without_a_judge_it_is_wrong(judged, alone, plain):
    """With a judge the text of one token per forward in a quarter of its forwards; without one, another."""
    assert judged.output() == plain.output()[: len(judged.output())] != alone.output()
    assert forwards(alone) < forwards(judged) and 4 * forwards(judged) < forwards(plain)
    assert alone.costs.accepted == alone.costs.proposed


def greedys_text_from_long_drafts(fresh, reused, greedy):
    """A quarter of greedy's forwards; a reused tail saves forwards of the drafter."""
    assert fresh.output() == reused.output() == greedy.output()
    assert 4 * forwards(fresh) < forwards(greedy)
    assert reused.costs.draft_forwards < fresh.costs.draft_forwards


def the_same_in_fewer_forwards(chain, tree, stepwise):
    """Token for token, with more tokens evaluated."""
    assert chain.output() == tree.output() == stepwise.output()
    assert forwards(tree) < forwards(chain) < 0.6 * forwards(stepwise)
    evaluated = [found.costs.totals()["target_tokens"] for found in (stepwise, chain, tree)]
    assert evaluated == sorted(evaluated)


def branches_cost_probability(few, many, threshold):
    """Forwards fall with the branches, and so does the probability of the text."""
    assert forwards(many) < forwards(few) < 0.7 * forwards(threshold)
    assert total(many) < total(few) < total(threshold)


def one_text_in_a_third_of_the_forwards(wedlm, single, greedy):
    """The record, right in all three lanes; one mask per forward saves nothing."""
    assert wedlm.output() == single.output() == greedy.output()
    assert 2.5 * forwards(wedlm) < forwards(greedy) <= forwards(single)


SHOWS = {
    "Known tokens first": one_text_in_a_third_of_the_forwards,
    "A long block, verified": greedys_text_from_long_drafts,
    "A small judge": without_a_judge_it_is_wrong,
    "Final long before": a_filter_saves_and_an_oracle_more,
    "A record out of order": one_text_in_fewer_forwards,
    "Noise that becomes a sentence": noise_becomes_a_sentence,
    "Near what is sure": too_low_is_wrong,
    "Blocks after a cache": a_bound_keeps_the_text,
    "Steps verified ahead": the_same_in_fewer_forwards,
    "The most confident canvas continues": branches_cost_probability,
}
