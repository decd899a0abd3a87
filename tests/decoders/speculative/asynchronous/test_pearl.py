"""PEARL: the hand trace, the same tokens in turn and at the same time, and no thread left behind."""

import threading
from time import sleep

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.asynchronous.concurrent_forward import ALONE, FIRST
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Commit, Forward, Note, Verdict, event_to_json
from tests.decoders.speculative.test_lossless_exact import SHAPES, pair
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds

VOCABULARY = 12


def says(*tokens: int, differs: int | None = None):
    """A law that is nearly sure of `tokens`, one after the other, after a prompt of one token. At place
    `differs` it wants another token.
    """

    def table(text: tuple[int, ...]) -> list[float]:
        place = len(text) - 1
        wanted = tokens[place % len(tokens)]
        wanted = (wanted + 1) % VOCABULARY if place == differs else wanted
        return [0.9 if t == wanted else 0.1 / (VOCABULARY - 1) for t in range(VOCABULARY)]

    return table


def run(models, parameters=None, tokens=24, prompt=(0,), seed=0, strategy="pearl"):
    lane = Lane(strategy, list(prompt), models, parameters or {}, seed, Limits(tokens))
    return lane.run()


def told(trace) -> list[list[dict]]:
    """All events without what a clock measured, and without the sentence about how it is measured."""
    return [
        [event_to_json(e) | {"start": 0, "seconds": 0} for e in s.events if e != Note(FIRST)]
        for s in trace.steps
    ]


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("target")]


@pytest.mark.parametrize("concurrent", [False, True])
def test_the_hand_trace(concurrent):
    """gamma = 3: a1; then a2 a3 b1; then b2, and b3 fails: six tokens, three rounds, nine draft forwards."""
    draft = TableModel(says(1, 2, 3, 4, 5, 6, 7, 8, 9), VOCABULARY)
    target = TableModel(says(1, 2, 3, 4, 5, 6, 7, 8, 9, differs=5), VOCABULARY)
    lane = Lane(
        "pearl",
        [0],
        {"target": target, "draft": draft},
        {"num_assistant_tokens": 3, "concurrent": concurrent},
        limits=Limits(30),
    )
    steps = [lane.advance() for _ in range(3)]
    lane.close()
    wrote = [[lane.tree.tokens[n] for c in step.of(Commit) for n in c.nodes] for step in steps]
    assert wrote == [[1], [2, 3, 4], [5, 7]]
    verdicts = [[v.status for v in step.of(Verdict)] for step in steps]
    assert verdicts[:2] == [["accepted"], ["accepted"] * 3]
    assert verdicts[2] == ["accepted", "rejected", "never reached", "resampled", *["never reached"] * 2]
    forwards = [[f.model for f in step.of(Forward)] for step in steps]
    assert forwards == [["draft", "draft", "draft", "target"]] * 3
    assert [f.tokens for step in steps for f in step.of(Forward) if f.model == "target"] == [1, 3, 3]


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_draft_that_is_the_target_commits_a_window_a_round(concurrent):
    model = TableModel(random_table(3), 3)
    models = {"target": model, "draft": TableModel(model.table, 3) if concurrent else model}
    for temperature in (0.0, 1.0):
        found = run(models, {"num_assistant_tokens": 4, "temperature": temperature}, tokens=25)
        assert [len(n) for s in found.steps for n in [s.of(Commit)[0].nodes]] == [1, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(  # each pair with shapes of both kinds: those that cut the support, and others
    ("models", "shape"),
    [
        ("close", "plain"),
        ("close", "cold, top-p"),
        ("close", "top-k"),
        ("far", "plain"),
        ("far", "top-k"),
        ("q has zeros", "hot"),
        ("q has zeros", "cold, top-p"),
        ("p has zeros", "hot"),
        ("p has zeros", "top-k"),
        ("equal", "hot"),
        ("equal", "top-k"),
    ],
)
def test_it_has_the_targets_law(models, shape):
    found, length = pair(models), 3
    parameters = {"num_assistant_tokens": 2, "concurrent": False, **SHAPES[shape]}
    law = law_of_rounds(Exhaustive(), "pearl", found, parameters, length)
    assert distance(law, exact_distribution(found["target"], (0,), length, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize(
    ("count", "eos"), [(1, frozenset()), (1, frozenset({2})), (2, frozenset({2})), (3, frozenset({2}))]
)
def test_it_has_the_targets_law_over_several_windows(count, eos):
    found = pair("close", eos)
    parameters = {"num_assistant_tokens": count, "temperature": 1.0, "top_k": 2, "concurrent": False}
    law = law_of_rounds(Exhaustive(), "pearl", found, parameters, 4)
    assert distance(law, exact_distribution(found["target"], (0,), 4, shape_of(parameters))) < 1e-12


WITHOUT = [("pre_verify",), ("post_verify",), ("pre_verify", "post_verify")]


@pytest.mark.parametrize("left_out", WITHOUT)
def test_its_ablations_have_the_targets_law_too(left_out):
    parameters = {"num_assistant_tokens": 2, "temperature": 1.0, "concurrent": False}
    parameters |= dict.fromkeys(left_out, False)
    law = law_of_rounds(Exhaustive(), "pearl", pair("close"), parameters, 3)
    assert distance(law, exact_distribution(pair("close")["target"], (0,), 3, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("left_out", WITHOUT)
def test_what_each_mode_saves(left_out):
    """A draft that is right: (tokens that the target reads, tokens that are written) of the first rounds."""
    model = TableModel(random_table(3), 3)
    parameters = {"num_assistant_tokens": 4, "concurrent": False, **dict.fromkeys(left_out, False)}
    found = run({"target": model, "draft": TableModel(model.table, 3)}, parameters, tokens=40)
    read = [sum(f.tokens for f in s.of(Forward) if f.model == "target") for s in found.steps[:4]]
    drafts = [sum(f.model == "draft" for f in s.of(Forward)) for s in found.steps[:4]]
    wanted = {
        ("pre_verify",): ([5, 4, 4, 4], [8, 4, 4, 4]),  # one window more at first, then as ever
        ("post_verify",): ([1, 4, 1, 4], [4, 0, 4, 0]),  # a window passes, then the next one is begun
        ("pre_verify", "post_verify"): ([5, 5, 5, 5], [4, 4, 4, 4]),  # plain speculative decoding
    }
    assert (read, drafts) == wanted[left_out]


@pytest.fixture(scope="module")
def models():
    return {"target": tiny_models.make("llama"), "draft": tiny_models.make("llama", 1)}


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("count", [1, 4])
def test_in_turn_and_at_the_same_time_tell_the_same(models, temperature, count):
    parameters = {"num_assistant_tokens": count, "temperature": temperature}
    longest = 0
    for prompt in ([40, 41, 42], [7], [200, 3, 3]):
        both = [
            run(models, {**parameters, "concurrent": concurrent}, 40, prompt, seed=3)
            for concurrent in (False, True)
        ]
        assert told(both[0]) == told(both[1])
        longest = max(longest, len(both[1].steps))
        if temperature == 0.0:
            assert both[0].output() == run(models, None, 40, prompt, strategy="greedy").output()
    assert longest > ALONE + 2 and not threads()


@pytest.mark.parametrize("concurrent", [False, True])
def test_at_the_same_time_the_forwards_overlap(concurrent):
    """With a target that takes its time, the draft runs while it does, after the rounds in turn."""
    table = random_table(3)
    models = {"target": TableModel(table, 3), "draft": TableModel(table, 3)}
    lane = Lane("pearl", [0], models, {"concurrent": concurrent}, limits=Limits(30))
    quick = lane.scorers["target"].score
    lane.scorers["target"].score = lambda *asked: sleep(0.03) or quick(*asked)
    found = lane.run()
    overlaps = []
    for step in found.steps:
        *drafts, target = step.of(Forward)
        overlaps.append(
            any(
                d.start < target.start + target.seconds and target.start < d.start + d.seconds for d in drafts
            )
        )
    assert not any(overlaps[:ALONE]) and any(overlaps[ALONE:]) == concurrent


@pytest.mark.parametrize("count", [0, 1, ALONE + 2])
def test_no_thread_outlives_a_lane(models, count):
    lane = Lane("pearl", [40, 41], models, {}, limits=Limits(40))
    for _ in range(count):
        lane.advance()
    assert bool(threads()) == (count > ALONE)
    lane.close()
    assert not threads()
    assert models["target"].engine.cache.used == models["draft"].engine.cache.used == 0


def test_one_model_in_both_roles_takes_turns():
    model = tiny_models.make("llama")
    found = run({"target": model, "draft": model}, {}, 20, [40, 41])
    assert "take turns" in found.steps[0].events[0].text
    assert found.output() == run({"target": model}, None, 20, [40, 41], strategy="greedy").output()
    assert not threads()


def test_a_failing_forward_ends_the_thread_too(models, monkeypatch):
    def fail(*_):
        raise RuntimeError("broken")

    lane = Lane("pearl", [40, 41], models, {}, limits=Limits(40))
    for _ in range(ALONE):
        lane.advance()
    monkeypatch.setattr(lane.scorers["target"], "score", fail)
    with pytest.raises(RuntimeError, match="broken"):
        lane.advance()
    lane.close()
    assert not threads()
