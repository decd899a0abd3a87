"""The token graph draws the walk: one box a token, one arrow a way, and counts that are those of the text."""

import math
from itertools import product

import numpy as np

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Distribution, Propose, Step
from decoders.trace.scores import Rank
from tests.helpers.view_folding import fold, of_kind
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.sampling.token_graph import ACROSS, TALL, WIDE, TokenGraph, bent, formula

WORDS = ["a", "b", "c", "d", "<b>"]


def step(node: int, token: int, likeliest: int | None = None) -> list:
    events = [Propose(node, node - 1, token, -1.0, "target"), Commit([node], [-1.0])]
    if likeliest is not None:
        events.insert(0, Distribution(node - 1, "target", [[likeliest, -0.5]], 0.4, 1.0))
    return events


def walk(prompt: list[int], tokens: list[int], **more):
    steps = [step(len(prompt) + i, token) for i, token in enumerate(tokens)]
    return fold(TokenGraph, steps, prompt, WORDS, **more)


def test_every_token_has_one_box_and_every_way_one_arrow():
    marks, _ = walk([0, 1], [2, 0, 1, 2, 3, 4])
    boxes, ways = of_kind(marks, "cell"), of_kind(marks, "path")
    assert [box["text"] for box in boxes] == WORDS
    assert {way["id"] for way in ways} == {"w0-1", "w1-2", "w2-0", "w2-3", "w3-4"}
    assert all(way["head"] for way in ways)
    assert boxes[4]["fill"] == "filled" and all(box["fill"] == "tint" for box in boxes[:4])


def test_a_way_taken_again_is_coloured_and_gets_thicker():
    once, _ = walk([0], [1, 2, 3])
    twice, _ = walk([0], [1, 2, 0, 1, 3])
    thrice, _ = walk([0], [1, 2, 0, 1, 2, 0, 1, 3])
    assert once["w0-1"]["role"] == "soft" and once["w2-3"]["role"] == "ink", "the newest step is strong"
    assert twice["w0-1"]["role"] == thrice["w0-1"]["role"] == "link"
    assert once["w0-1"]["width"] < twice["w0-1"]["width"] < thrice["w0-1"]["width"]


def test_the_heading_counts_what_came_back_and_what_was_likeliest():
    steps = [
        step(2, 2, likeliest=0),
        step(3, 0, likeliest=0),
        step(4, 1, likeliest=1),
        step(5, 3, likeliest=2),
    ]
    marks, _ = fold(TokenGraph, steps, [0, 1], WORDS)
    assert marks["heading"]["lead"] == "4 steps, 4 tokens"
    assert marks["heading"]["heading"] == (
        ": 2 steps returned to an earlier token, 1 by a repeated transition. "
        "The top-1 token was taken in 50 %, 2 times a new token instead of a repetition."
    )


def test_the_heading_names_the_loop_in_which_the_text_goes_round():
    def heading(tokens):
        return walk([0], tokens)[0]["heading"]["heading"]

    assert "Loop" not in heading([1, 2, 0])
    assert "Loop" not in heading([1, 2, 0, 1]), "one way was taken again, but not all of a loop"
    assert heading([1, 2, 0, 1, 2, 0]).endswith(" Loop: a b c, 2 times.")
    assert heading([1, 2, 0, 1, 2, 0, 1, 2, 0]).endswith(" Loop: a b c, 3 times.")
    assert heading([1, 1, 1]).endswith(" Loop: b, 2 times.")
    assert "Loop" not in heading([1, 2, 0, 1, 2, 0, 3])


def test_the_prompt_is_part_of_the_walk_and_hovers_tell_where_it_went():
    marks, _ = walk([0, 1, 0, 2], [0, 1])
    assert marks["t0"]["hover"] == ["a: 3 times in the text", "then b 2 times · c"]
    assert marks["t2"]["state"] == "prompt" and marks["t1"]["state"] == "chosen"
    assert marks["t1"]["node"] == 5


def test_places_are_rows_of_twelve_and_every_arrow_stays_in_the_picture():
    tokens = list(range(30))
    steps = [step(1 + i, token) for i, token in enumerate([*tokens[1:], 3, 29, 29, 12, 11, 14])]
    marks, _ = fold(TokenGraph, steps, [0], [str(t) for t in tokens])
    at = [(marks[f"t{t}"]["x"], marks[f"t{t}"]["y"]) for t in (0, 11, 12, 29)]
    assert at == [(1, 0.5), (ACROSS, 0.5), (1, 1.5), (6, 2.5)]
    for way in of_kind(marks, "path"):
        assert all(0.4 < x < ACROSS + 0.6 and -0.1 < y < 3.2 for x, y in way["points"]), way["id"]


def test_the_candidates_of_the_newest_step_and_the_one_that_was_turned_aside():
    circle = TableModel(lambda past: [0.55 if t == (past[-1] + 1) % 3 else 0.15 for t in range(4)], 4)
    trace = Lane(
        "momentum", [0, 1, 2], {"target": circle}, {"top_k": 4}, limits=Limits(max_new_tokens=1)
    ).run()
    view = TokenGraph(Header(trace.prompt, trace.vocabulary, trace.parameters))
    view.head()
    ops = to_json(view.feed(trace.steps[0]))
    texts = [op["text"] for op in ops if op.get("kind") == "label"]
    assert texts[:4] == ["● a", "p .55  run 1  = .35", "b", "p .15  run 1  = −.05"]
    assert not [op for op in ops if op.get("role") == "rejected"], (
        "the top-1 token was taken: none turned aside"
    )
    forced = Lane(
        "momentum", [0, 1, 2, 0, 1, 2], {"target": circle}, {"top_k": 4}, limits=Limits(max_new_tokens=1)
    ).run()
    view = TokenGraph(Header(forced.prompt, forced.vocabulary, forced.parameters))
    view.head()
    ops = to_json(view.feed(forced.steps[0]))
    (aside,) = [op for op in ops if op.get("role") == "rejected"]
    assert forced.output() == [3] and aside["points"] == bent(3, 0.5, 1, 0.5)
    after = to_json(view.feed(Step(1, [Propose(7, 6, 0, -1.0, "target"), Commit([7], [-1.0])])))
    assert {"id": aside["id"], "set": {"gone": True}} in after


def test_scores_are_written_with_their_first_two_parts():
    score = Rank(5, "momentum", -0.05, {"p": 0.55, "run": 3, "resistance": 0.6}, rank=2)
    assert formula(score) == "p .55  run 3  = −.05"
    assert math.isclose(score.parts["p"] - score.parts["resistance"], score.total)


def test_no_way_runs_through_the_box_of_another_token():
    """From every token of five rows to every other: ways touch the boxes that they join, and no third."""
    places = [(x + 1, y + 0.5) for y in range(5) for x in range(ACROSS)]
    boxes = np.array(places)
    for (x0, y0), (x1, y1) in product(places, places):
        if (x0, y0) == (x1, y1) or (y0 == y1 and x1 == x0 + 1):
            continue
        points = np.array(bent(x0, y0, x1, y1))
        steps = np.linspace(0, 1, 8)[:, None, None]
        line = (points[:-1] + (points[1:] - points[:-1]) * steps).reshape(-1, 1, 2)
        inside = np.abs(line - boxes) < [WIDE / 2 - 0.001, TALL / 2 - 0.001]
        hit = {tuple(boxes[i]) for i in np.flatnonzero(inside.all(axis=2).any(axis=0))}
        assert hit <= {(x0, y0), (x1, y1)}, ((x0, y0), (x1, y1), hit)
