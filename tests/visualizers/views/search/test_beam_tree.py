"""The beam tree on hand-made beams: stable slots, states follow the leader, one mark per candidate."""

import random

import pytest

import decoding_explorer
from decoders.trace.events import Commit, Propose, Step, Verdict
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold, of_kind, vocabulary
from visualizers.scene.layout import to_json
from visualizers.scene.tree_rows import Slots
from visualizers.scene.view import Header
from visualizers.views.search.beam_tree import BeamTree

WORDS = ["Once", " a", " big", " dog", "<b>", "."]
PROMPT = [0, 1]  # nodes 0 and 1; the root is node 1


def propose(node: int, parent: int, token: int = 2, logprob: float = -1.0, slot: int = 0) -> Propose:
    return Propose(node, parent, token, logprob, "target", slot)


def two_beams() -> list[list]:
    """Two beams: node 3 leads, then 2's child 5 takes the lead, 3's line dies, and 5 is committed."""
    return [
        [
            propose(2, 1, 2, -0.5),
            propose(3, 1, 3, -0.4, 1),
            propose(4, 1, 4, -3.0, 2),
            Verdict(4, "pruned", reason="rank 3 of 3, 2 are kept"),
            Rank(3, "sum_logprob", -0.4, rank=1),
            Rank(2, "sum_logprob", -0.5, rank=2),
        ],
        [
            propose(5, 2, 3, -0.1),
            propose(6, 2, 2, -0.2, 1),
            propose(7, 3, 5, -0.9, 2),
            Verdict(7, "finished"),
            Rank(7, "length_penalised", -0.65),
            Verdict(3, "pruned"),
            Rank(5, "sum_logprob", -0.6, rank=1),
            Rank(6, "sum_logprob", -0.7, rank=2),
            Commit([2], [-0.5]),
        ],
        [Verdict(6, "pruned"), Commit([5], [-0.1])],
    ]


def run(steps, **parameters):
    return fold(BeamTree, steps, PROMPT, WORDS, **{"num_beams": 2, **parameters})


def test_every_candidate_has_its_mark_and_the_dropped_one_is_a_tick():
    marks, _ = run(two_beams())
    assert {m["node"] for m in marks.values() if "node" in m} == {1, 2, 3, 4, 5, 6, 7}
    tick = marks["n4"]
    assert (tick["kind"], tick["x"], tick["y"], tick["index"]) == ("tick", 0, 0, 0)
    assert "rank 3 of 3" in tick["hover"][0] and "&" not in tick["hover"][0]


def test_the_leader_is_chosen_and_changes_only_colours():
    first, _ = run(two_beams()[:1])
    assert (first["n3"]["state"], first["n2"]["state"]) == ("chosen", "live")
    second, _ = run(two_beams()[:2])
    states = {n: second[f"n{n}"]["state"] for n in (2, 3, 5, 6, 7)}
    assert states == {2: "chosen", 3: "pruned", 5: "chosen", 6: "live", 7: "finished"}
    assert (first["n3"]["x"], first["n3"]["y"]) == (second["n3"]["x"], second["n3"]["y"])


def test_the_end_leaves_one_spine_and_no_front_of_the_dead():
    marks, _ = run(two_beams())
    assert [m["node"] for m in of_kind(marks, "node") if m["state"] == "chosen"] == [2, 5]
    assert marks["n6"]["ended"] and marks["n6"]["note"] is None
    assert marks["e5"]["agreed"] and not of_kind(marks, "guide")


def test_rank_and_sum_stand_at_the_front():
    marks, _ = run(two_beams()[:2])
    assert marks["n5"]["note"] == "#1  −0.6" and marks["n5"]["note_more"] == "90 %"
    assert marks["n3"]["note"] is None and marks["n7"]["note"] == "−0.65"


def test_a_finished_hypothesis_hangs_half_a_row_below_its_parent():
    marks, _ = run(two_beams())
    assert marks["n7"]["y"] == marks["n3"]["y"] + 0.5 and marks["n7"]["x"] == 2


def test_markup_in_tokens_stays_what_it_is():
    marks, _ = run([[propose(2, 1, 4, -0.1), Rank(2, "sum_logprob", -0.1, rank=1)]])
    assert marks["n2"]["text"] == "<b>"  # the player writes it as text


@pytest.mark.parametrize(("beams", "seed"), [(2, 0), (4, 1), (8, 2), (16, 3)])
def test_whole_runs_keep_to_their_rows_and_nothing_moves(beams, seed):
    """Random beams of 25 steps; `fold` checks that no op moves a mark, here no two live limbs share a row."""
    rng, node, live, steps = random.Random(seed), 2, [(1, 0.0)], []
    for _ in range(25):
        found = sorted(((s + rng.uniform(-4, 0), n) for n, s in live for _ in range(4)), reverse=True)[
            : 2 * beams
        ]
        events, kept = [], []
        for slot, (total, parent) in enumerate(found):
            events.append(propose(node, parent, 2, -0.5, slot))
            if slot < beams:
                kept.append((node, total))
            else:
                events.append(Verdict(node, "pruned"))
            node += 1
        parents = {n for n, _ in live} - {
            e.parent for e in events if isinstance(e, Propose) and e.slot < beams
        }
        events += [Verdict(n, "pruned") for n in parents if n != 1]
        live = kept
        steps.append(events + [Rank(n, "sum_logprob", s, rank=r + 1) for r, (n, s) in enumerate(kept)])
    marks, _ = run(steps, num_beams=beams)
    nodes = of_kind(marks, "node")
    assert all(0 <= m["y"] < beams + 0.5 for m in nodes)
    assert len({(m["x"], m["y"]) for m in nodes}) == len(nodes)
    assert {m["node"] for m in marks.values() if "node" in m} == set(range(1, node))
    front = [m for m in nodes if m.get("front")]
    assert {m["node"] for m in front} == {n for n, _ in live} and sum(
        m["state"] == "chosen" for m in front
    ) == 1


def test_several_samples_without_scores_get_a_row_each():
    steps = [[propose(2, 1), propose(3, 1, 3)], [propose(4, 2), propose(5, 3)]]
    marks, _ = run(steps, num_beams=1, num_return_sequences=2)
    assert marks["n4"]["y"] == marks["n2"]["y"] != marks["n3"]["y"] == marks["n5"]["y"]


@pytest.mark.parametrize("name", ["beam", "edu_plans", "first_finish", "mbr"])
def test_recorded_searches_have_a_row_for_each_text_at_a_time(name):
    trace = decoding_explorer.open(f"assets/examples/methods/{name}.json.gz")
    view = BeamTree(Header.of(trace))
    rows = view.head().rows
    for step in trace.steps:
        view.feed(step)
    lowest = max(view.slots.row.values())
    assert rows - 2 < lowest < rows  # finished texts hang half a row below their parent


def test_slots_give_the_best_child_its_parents_row_and_others_the_nearest():
    slots = Slots(4, root=0)
    assert slots.row[0] == 1
    assert slots.place([(1, 0), (2, 0), (3, 0)], set()) == {1: 1, 2: 0, 3: 2}


def test_a_step_is_said_in_one_sentence():
    view = BeamTree(Header(PROMPT, vocabulary(*WORDS), {"num_beams": 2}))
    (said,) = [op["say"] for op in to_json(view.feed(Step(0, two_beams()[0]))) if "say" in op]
    assert said == "Step 1: ␣dog leads, sum −0.40, 2 live, 1 dropped at once."


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_finished_texts_of_one_parent_stand_below_each_other_each_with_its_score(count):
    events = [propose(2 + i, 1, slot=i) for i in range(count)]
    events += [Rank(2 + i, "length_normalized", -0.5 - i) for i in range(count)]
    events += [Verdict(2 + i, "finished") for i in range(count)]
    marks, _ = fold(BeamTree, [events], PROMPT, WORDS, num_beams=4)
    ended = [m for m in of_kind(marks, "node") if m["state"] == "finished"]
    assert [m["note"] for m in ended] == [f"−{0.5 + i:.2f}" for i in range(count)]
    rows = [m["y"] for m in ended]
    assert len(set(rows)) == count and all(0 < y - marks["n1"]["y"] < 1 for y in rows)
    assert all(m["note_priority"] < 4 for m in ended)  # before words that many a picture has too many of
