"""Each step as a sentence: its numbers are those of the events, and every step of every strategy has one."""

import math
import re

import pytest

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.events import Cell, Commit, Distribution, Note, Propose, Step, Verdict
from decoders.trace.scores import Rank
from decoders.trace.trace import load
from explorer.catalog.recorded_runs import FOLDER
from tests.helpers.said_and_done import TESTED, Done, unlike
from tests.helpers.view_folding import vocabulary
from visualizers.registry import deltas
from visualizers.scene.view import Header

RECORDED = sorted(path.name for path in (FOLDER / "methods").glob("*.json.gz"))
WORDS = ["Once", " a", " big", " dog", "<b>", "."]


def said(*steps: list) -> list[str]:
    """The sentences of hand-made steps after the prompt "Once a"."""
    header = Header([0, 1], vocabulary(*WORDS), {})
    made = deltas("text", header, [Step(i, events) for i, events in enumerate(steps)])[1]
    return [op["say"] for delta in made for op in delta["ops"] if "say" in op]


def log(p: float) -> float:
    return math.log(p)


def test_a_chosen_token_with_what_was_next_and_what_was_likelier():
    offered = [Distribution(1, "target", [[2, log(0.63)], [3, log(0.12)]], 0.25, math.log(2) * 1.5)]
    top = [*offered, Propose(2, 1, 2, log(0.63), "target"), Commit([2], [log(0.63)])]
    assert said(top) == ["Step 1: “␣big” (p .63, next “␣dog” .12, entropy 1.50 bits)."]
    drawn = [*offered, Propose(2, 1, 3, log(0.12), "target"), Commit([2], [log(0.12)])]
    assert said(drawn) == ["Step 1: “␣dog” (p .12, top-1: “␣big” .63, entropy 1.50 bits)."]


def test_a_round_with_its_rejection_and_a_note():
    events = [
        Propose(2, 1, 2, -0.1, "draft"),
        Propose(3, 2, 3, -0.1, "draft"),
        Verdict(2, "accepted", p=0.9, q=0.8),
        Verdict(3, "rejected", p=0.07, q=0.21, u=0.71),
        Propose(4, 2, 4, -0.1, "target"),
        Verdict(4, "resampled"),
        Commit([2, 4], [-0.1, -0.2]),
        Note("It stopped early."),
    ]
    assert said(events) == [
        "Round 1: 1 of 2 drafted tokens accepted; “␣dog” rejected (p .07, q .21, u .71), "
        "“<b>” written instead. It stopped early."
    ]


def test_a_round_that_ends_with_the_bonus_token():
    events = [
        Propose(2, 1, 2, -0.1, "draft"),
        Verdict(2, "accepted", p=0.9, q=0.8),
        Propose(3, 2, 3, -0.1, "target"),
        Verdict(3, "bonus"),
        Commit([2, 3], [-0.1, -0.2]),
    ]
    assert said(events) == ["Round 1: 1 of 1 drafted token accepted; bonus token “␣dog”."]


def test_beams_and_iterations():
    beams = [
        Propose(2, 1, 2, -0.5, "target"),
        Propose(3, 1, 3, -1.5, "target"),
        Rank(2, "sum_logprob", -0.5, rank=1),
        Verdict(3, "pruned"),
    ]
    assert said(beams) == ["Step 1: “…␣big” leads with Σ log p −0.50; 1 live, 1 pruned."]
    cells = [Cell(2, 1, 2, "settled"), Cell(3, 1, 3, "changed"), Cell(4, 1, 5, "kept")]
    assert said([], cells) == [
        "Step 1: nothing is final yet.",
        "Iteration 1: 1 position settled (“␣big”), 1 changed, 1 kept.",
    ]


def test_a_canvas_says_what_was_filled_and_how_many_masks_are_left():
    first = [
        *[Cell(p, 0, 5, "mask") for p in (2, 3, 4)],
        Cell(3, 1, 2, "forced", 0.4),
        Cell(2, 1, 3, "candidate"),
    ]
    drafts = [
        Propose(2, 1, 3, -0.1, "canvas"),
        Propose(3, 2, 4, -0.1, "canvas"),
        Verdict(2, "accepted"),
        Verdict(3, "rejected"),
        Cell(2, 2, 3, "verified", 0.4),
        Cell(4, 2, 4, "committed", 0.4),
    ]
    assert said(first, drafts) == [
        "Iteration 1: 1 position filled (“␣big”), 2 masks left.",
        "Iteration 2: 1 of 2 drafted canvases accepted, 2 positions filled (“␣dog”, “<b>”), 0 masks left.",
    ]


def test_the_guesses_of_an_iteration_are_not_an_iteration_of_their_own():
    guessed = [Propose(2, 1, 2, None, "guess"), Cell(2, 0, 2, "guess"), Cell(2, 1, 3, "settled")]
    assert said(guessed) == ["Iteration 1: 1 position settled (“␣dog”)."]
    assert said(guessed[:2]) == ["First guess: 1 guessed."]


def test_a_flow_settles_nothing_before_its_last_iteration():
    start = [Cell(2, 0, 2, "guess"), Cell(3, 0, 2, "guess"), Cell(2, 1, 3, "changed"), Cell(3, 1, 2, "kept")]
    last = [
        Cell(2, 2, 3, "committed"),
        Cell(3, 2, 2, "committed"),
        Propose(2, 1, 3, -0.1, "flow"),
        Commit([2], [-0.1]),
    ]
    assert said(start, last) == [
        "Iteration 1: 1 changed, 1 kept.",
        "Iteration 2: 2 positions settled (“␣dog”, “␣big”).",
    ]


def test_a_round_counts_what_the_target_was_given_whenever_it_was_drafted():
    ahead = [
        Propose(2, 1, 2, -0.1, "draft"),
        Propose(3, 2, 3, -0.1, "draft"),
        Propose(4, 1, 4, -0.1, "draft"),
        Verdict(4, "pruned"),  # before the target saw it
        Verdict(2, "accepted"),
        Commit([2], [-0.1]),
    ]
    late = [Verdict(3, "accepted"), Commit([3], [-0.1])]
    assert said(ahead, late) == [
        "Round 1: 1 of 1 drafted token accepted.",
        "Round 2: 1 of 1 drafted token accepted.",
    ]


def test_a_tree_names_the_token_that_was_replaced_and_not_a_sibling_passed_over():
    events = [
        Propose(2, 1, 2, -0.1, "draft"),
        Propose(3, 1, 3, -0.1, "draft"),
        Propose(4, 3, 4, -0.1, "draft"),
        Verdict(2, "rejected", p=0.1),
        Verdict(3, "accepted", p=0.9),
        Verdict(4, "rejected", p=0.2),
        Propose(5, 3, 5, -0.1, "target"),
        Verdict(5, "resampled"),
        Commit([3, 5], [-0.1, -0.2]),
    ]
    assert said(events) == [
        "Round 1: 1 of 3 drafted tokens accepted; “<b>” rejected (p .20), 1 other rejected, "
        "“.” written instead."
    ]


def test_a_chosen_pruned_or_finished_text_is_not_live():
    scores = [Rank(node, "sum_logprob", -0.5 * node, rank=node - 1) for node in (2, 3, 4, 5)]
    born = [Propose(node, 1, node, -0.5 * node, "target") for node in (2, 3, 4, 5)]
    over = [Verdict(3, "pruned"), Verdict(4, "finished")]
    assert said([*born, *scores, *over, Commit([2], [-1.0])]) == [
        "Step 1: “…␣big” leads with Σ log p −1.00; 1 live, 1 pruned, 1 finished."
    ]


def test_given_tokens_are_no_step_of_the_strategy():
    given = [Propose(2, 1, 2, None, "copied"), Commit([2], [None])]
    drafted = [Propose(3, 2, 3, -0.1, "draft"), Verdict(3, "accepted"), Commit([3], [-0.1])]
    assert said(given, drafted, []) == [
        "Step 1: begins with 1 given token.",
        "Round 1: 1 of 1 drafted token accepted.",
        "Step 3: no other token is final.",
    ]


@pytest.mark.parametrize("name", RECORDED)
def test_every_sentence_of_a_recorded_run_says_what_its_events_say(name):
    trace = load(FOLDER / "methods" / name)
    header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
    done = Done(trace.prompt, trace.vocabulary)
    for step, delta in zip(trace.steps, deltas("text", header, trace.steps)[1], strict=True):
        (sentence,) = [op["say"] for op in delta["ops"] if "say" in op]
        done.read(step)
        assert unlike(sentence, done) is None


@pytest.mark.parametrize("name", strategies())
def test_every_step_of_every_strategy_has_one_sentence_with_a_number(name, target_for, tiny_model, prompt):
    models = {"target": target_for(name), "draft": tiny_model(seed=1)}
    trace = Lane(name, prompt, models, {}, 0, Limits(6)).run()
    header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
    for delta in deltas("text", header, trace.steps)[1]:
        (sentence,) = [op["say"] for op in delta["ops"] if "say" in op]
        assert re.match(r"(Step|Round|Iteration) \d+: |First guess: ", sentence) and sentence.endswith(".")


FILLING = ("canvas", "canvas_grid", "filter_grid", "canvas_drafts", "canvas_branches")
ROUNDS = ("draft_rounds", "accepted_lengths", "common_noise")
DRAWN = [
    (name, view)
    for name in RECORDED
    if (strategy := strategies().get(name.removesuffix(".json.gz")))
    for view in strategy.views
    if view in FILLING + ROUNDS
]


@pytest.mark.parametrize(("name", "view"), DRAWN)
def test_the_views_of_canvases_and_rounds_count_as_the_events_do(name, view):
    trace = load(FOLDER / "methods" / name)
    header = Header(trace.prompt, trace.vocabulary, trace.parameters, trace.title)
    done, filled = Done(trace.prompt, trace.vocabulary), set()
    for step, delta in zip(trace.steps, deltas(view, header, trace.steps)[1], strict=True):
        done.read(step)
        filled = filled | done.filled() - done.cut()
        for sentence in [op["say"] for op in delta["ops"] if "say" in op]:
            if view in FILLING:
                now, everything = re.search(
                    r"(\d+) positions? filled(?:, (\d+) in all)?\.", sentence
                ).groups()
                assert (int(now), int(everything or len(filled))) == (len(done.filled()), len(filled)), (
                    sentence
                )
            if found := re.search(
                r"(?:accepted )?(\d+) of (\d+)(?: drafted tokens? accepted)?[,;. ]", sentence
            ):
                counts = tuple(map(int, found.groups()))
                assert view not in ROUNDS or counts == (done.tested("accepted"), done.tested(*TESTED)), (
                    sentence
                )
            if found := re.match(r"(?:Iteration|Forward|Round|round) (\d+)", sentence):
                assert int(found[1]) == len(trace.steps[: step.index + 1]), sentence
