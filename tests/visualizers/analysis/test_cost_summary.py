"""The cost strip says what was paid: first what the lane is about, and nothing that it does not have."""

from decoders.trace.costs import Costs
from decoders.trace.events import Commit, Forward, Propose, Step, Verdict
from decoders.trace.scores import Rank
from visualizers.analysis.cost_summary import DEFINITIONS, TABLE, strip, table_row


def labels(costs: Costs) -> dict:
    return {entry["name"]: entry["label"] for entry in strip(costs)}


def greedy_costs() -> Costs:
    costs = Costs()
    for i in range(4):
        costs.add(
            Step(
                i,
                [
                    Forward("target", "decode", 1, 1, i, 0.1),
                    Propose(3 + i, 2 + i, 7, -0.5, "target"),
                    Commit([3 + i], [-0.5]),
                ],
                seconds=0.5 * (i + 1),
            )
        )
    return costs


def test_a_lane_without_drafts_has_no_numbers_of_drafts():
    assert labels(greedy_costs()) == {
        "tokens / target forward": "1.00",
        "target forwards": "4",
        "Σ log p": "−2.0",
        "tokens/s": "2.0",
        "steps": "4",
    }


def two_beams(steps: int) -> Costs:
    """Beams 1, 2, ... and 11, 12, ...; the second leads. Each token has log-probability -0.5."""
    costs = Costs()
    for i in range(steps):
        events = [Forward("target", "decode", 2, 2, i, 0.1)]
        for beam in (0, 10):
            before = beam + i if i else 0
            events.append(Propose(beam + i + 1, before, 7, -0.5, "target"))
            events.append(Rank(beam + i + 1, "sum_logprob", -1.0, rank=1 if beam else 2))
        costs.add(Step(i, events, seconds=0.5 * (i + 1)))
    return costs


def test_the_best_candidate_counts_and_the_strip_says_so():
    found = labels(two_beams(3))
    assert found["tokens / target forward, best so far"] == "1.00"
    assert found["tokens/s, best so far"] == "2.0" and found["Σ log p, best so far"] == "−1.5"


def test_as_long_as_any_of_the_text_is_not_final_the_whole_best_candidate_counts():
    costs = two_beams(3)
    costs.add(Step(3, [Commit([11], [-0.5])], seconds=1.5))
    found = labels(costs)
    assert found["tokens / target forward, best so far"] == "1.00" and "Σ log p" not in found
    assert found["tokens/s, best so far"] == "2.0" and found["Σ log p, best so far"] == "−1.5"
    cells = dict(zip(TABLE, table_row(costs), strict=True))
    assert cells["tokens / target forward"] == {"value": 1.0, "label": "1.00, best so far"}
    assert cells["new tokens"]["label"] == "1"
    costs.add(Step(4, [Commit([12, 13], [-0.5, -0.5])], seconds=1.5))
    assert labels(costs)["tokens / target forward"] == "1.00" and labels(costs)["Σ log p"] == "−1.5"


def test_a_candidate_that_was_given_up_does_not_count():
    costs = two_beams(3)
    costs.add(Step(3, [Commit([1], [-0.5])], seconds=1.5))  # the other beam
    assert labels(costs)["tokens / target forward"] == "0.33" and not costs.ahead
    costs = two_beams(3)
    costs.add(Step(3, [Verdict(13, "pruned")], seconds=1.5))
    assert labels(costs)["tokens / target forward"] == "0.00" and costs.totals()["new_tokens"] == 0


def test_a_fresh_lane_has_no_ratio():
    assert labels(Costs()) == {"steps": "0"}


def test_rounds_acceptance_and_slots_of_a_speculative_lane():
    costs = Costs()
    costs.add(
        Step(
            0,
            [
                Forward("draft", "draft", 1, 1, 0, 0.1),
                Propose(3, 2, 7, -0.5, "draft"),
                Propose(4, 3, 8, -0.5, "draft"),
                Propose(5, 4, 9, -0.5, "draft"),
                Forward("target", "verify", 4, 1, 0.1, 0.1),
                Verdict(3, "accepted"),
                Verdict(4, "accepted"),
                Verdict(5, "rejected"),
                Propose(6, 4, 1, -1.0, "target", 1),
                Verdict(6, "resampled"),
                Commit([3, 4, 6], [-0.5, -0.5, -1.0]),
            ],
            seconds=0.01,
            slots=1234,
        )
    )
    found = labels(costs)
    assert found["round"] == "1" and not {"step", "steps"} & set(found)
    assert found["draft forward"] == "1" and found["drafted tokens used"] == ".67"
    assert found["tokens / target forward"] == "3.00" and found["tokens/s"] == "300"
    assert found["KV slots"] == "1,234"


def test_every_entry_is_defined_in_one_sentence():
    for entry in strip(greedy_costs()):
        assert entry["title"].endswith(".") and entry["title"].count(".") == 1
    assert all(text.endswith(".") for text in DEFINITIONS.values())


def test_a_text_with_a_token_of_unknown_probability_has_no_sum():
    costs = Costs()
    costs.add(Step(0, [Propose(3, 2, 7, None, "target"), Commit([3], [None])]))
    costs.add(Step(1, [Propose(4, 3, 7, -0.5, "target"), Commit([4], [-0.5])]))
    assert "Σ log p" not in labels(costs)
    cells = dict(zip(TABLE, table_row(costs), strict=True))
    assert cells["Σ log p"]["value"] is None and cells["log p / token"]["value"] is None


def test_a_sum_that_rounds_to_zero_has_no_minus():
    costs = Costs()
    costs.add(Step(0, [Propose(3, 2, 7, -0.001, "target"), Commit([3], [-0.001])], seconds=1.0))
    assert labels(costs)["Σ log p"] == "0.0"


def test_a_text_that_is_written_out_of_order_has_no_drafts():
    """Parts of a text that nobody tests are no drafts, so there is no acceptance and no round."""
    costs = Costs()
    for i, source in enumerate(("prefix", "suffix", "middle", "left to right", "placed")):
        costs.add(Step(i, [Propose(i + 1, i, 0, -0.1, source), Commit([i + 1], [-0.1])]))
    assert "drafted tokens used" not in labels(costs) and labels(costs)["steps"] == "5"


def test_one_of_a_thing_is_counted_in_the_singular():
    costs = Costs()
    costs.add(
        Step(
            0, [Forward("target", "decode", 1, 1, start=0.0, seconds=0.1), Commit([9], [-0.5])], 0.1, slots=1
        )
    )
    found = {entry["name"]: entry for entry in strip(costs)}
    assert {"step", "target forward", "KV slot"} <= set(found)
    assert found["step"]["label"] == "1" and found["step"]["title"] == DEFINITIONS["steps"]


def test_slots_are_those_of_the_newest_step():
    costs = Costs()
    for i, slots in enumerate((9, 12, 7)):
        costs.add(Step(i, [Commit([9 + i], [-0.5])], 0.1, slots))
    assert labels(costs)["KV slots"] == "7"
