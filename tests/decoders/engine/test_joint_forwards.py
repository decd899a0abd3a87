"""Joint forwards: rows of several lanes in one forward, each with the numbers of a forward of its own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.engine import joint_forwards
from decoders.engine.engine import Engine, Scorer
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.trace.events import Forward
from explorer.runs.slices import pause
from tests.decoders.engine.test_engine import LIMBS, PROMPT, assert_close, check, grow
from tests.helpers import tiny_models
from tests.helpers.in_company import in_company, in_turns


class Counted(Engine):
    """An engine that counts its forwards, and may be told to fail at a token."""

    fails_at = None

    def _forward(self, request):
        self.counts = [*getattr(self, "counts", []), len(request.tokens)]
        if self.fails_at in request.tokens:
            raise RuntimeError("no memory")
        return super()._forward(request)


def together(scorers: list[Scorer], nodes: list[list[int]], hidden: bool = False) -> list:
    """What each scorer gives for its nodes, or raises, where all of them wait for one forward."""
    for scorer in scorers:
        scorer.pause = pause
    asked = zip(scorers, nodes, strict=True)
    return in_turns([lambda s=scorer, n=wanted: s.score(n, hidden) for scorer, wanted in asked])


def lanes_of(engine: Engine) -> tuple[list[Tree], list[Scorer]]:
    """Three lanes, two of which share a prompt; their slots alternate."""
    trees = [grow(), grow(), grow([(parent - 2, token) for parent, token in LIMBS], [9, 8, 7])]
    scorers = [engine.attach(tree) for tree in trees]
    for scorer, tree in zip(scorers, trees, strict=True):
        scorer.score([tree.trunk - 1])
    for at in range(3):
        for scorer, tree in zip(scorers, trees, strict=True):
            scorer.score([tree.trunk + at])
    return trees, scorers


@pytest.mark.parametrize("kind", list(tiny_models.KINDS))
def test_joint_rows_equal_separate_forwards(kind, tiny_model):
    model = tiny_model(kind)
    engine = Counted(model.model)
    trees, scorers = lanes_of(engine)
    before = len(engine.counts)
    wanted = [[14, 9, 12], [10], [trees[2].trunk + 4, trees[2].trunk + 7]]
    rows = together(scorers, wanted)
    assert len(engine.counts) == before + 1
    assert [scorer.work.lanes for scorer in scorers] == [3, 3, 3]
    for tree, nodes, logits in zip(trees, wanted, rows, strict=True):
        for node, row in zip(nodes, logits, strict=True):
            check(model, tree, node, row)
    for scorer, tree in zip(scorers, trees, strict=True):  # and the keys that they left are right
        last = len(tree.tokens) - 1
        check(model, tree, last, scorer.score([last])[0])


def test_joint_rows_forget_what_a_sliding_window_forgets(tiny_model):
    for layers in (["sliding_attention"] * 2, ["sliding_attention", "full_attention"]):
        source = tiny_model("gemma3").model
        config = type(source.config)(
            **{**source.config.to_dict(), "sliding_window": 4, "layer_types": layers}
        )
        model = type(source)(config).eval()
        model.load_state_dict(source.state_dict())
        engine = Counted(model)
        trees, scorers = lanes_of(engine)
        short = Tree([5, 6])  # forgets nothing yet: its mask has another form
        scorers.append(engine.attach(short))
        rows = together(scorers, [[13, 14], [10], [trees[2].trunk + 8], [1]])
        for tree, node, row in zip([*trees, short], [14, 10, trees[2].trunk + 8, 1], rows, strict=True):
            alone = model(torch.tensor([tree.text(node)]), use_cache=False).logits[0, -1]
            assert_close(row[-1], alone)


APART = joint_forwards.APART
limbs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 255)), min_size=1, max_size=9)


@pytest.mark.parametrize("apart", [0, 10**9])  # always, never
@settings(max_examples=40, deadline=None, derandomize=True)
@given(grown=st.lists(limbs, min_size=2, max_size=6), data=st.data())
def test_any_trees_run_together_with_releases_between(tiny_model, apart, grown, data):
    joint_forwards.APART = apart
    try:
        any_trees(tiny_model(), grown, data)
    finally:
        joint_forwards.APART = APART


def any_trees(model: LoadedModel, grown: list, data: st.DataObject) -> None:
    """Grown trees of one model get the rows that they would get alone, whatever is asked and released."""
    engine = Engine(model.model)
    trees = [Tree(data.draw(st.sampled_from([PROMPT, [1], [9, 9]]))) for _ in grown]
    for tree, limb in zip(trees, grown, strict=True):
        for offset, token in limb:
            tree.add(max(len(tree.tokens) - 1 - offset, 0), token)
    scorers = [engine.attach(tree) for tree in trees]
    for _ in range(3):
        wanted = [
            data.draw(st.lists(st.integers(0, len(t.tokens) - 1), min_size=1, max_size=4, unique=True))
            for t in trees
        ]
        rows = together(scorers, wanted, hidden=data.draw(st.booleans()))
        for tree, scorer, nodes, logits in zip(trees, scorers, wanted, rows, strict=True):
            for node, row in zip(nodes, logits, strict=True):
                check(model, tree, node, row)
            dead = data.draw(st.sampled_from(nodes))
            scorer.release([n for n in range(tree.trunk, len(tree.tokens)) if dead in tree.path(n)])
    for scorer in scorers:
        scorer.close()
    assert engine.cache.used == 0 and not engine.joint.waiting


def test_what_differs_too_much_runs_apart(tiny_model, monkeypatch):
    engine = Counted(tiny_model().model)
    trees, scorers = lanes_of(engine)
    monkeypatch.setattr(joint_forwards, "ROWS", 2)
    before = len(engine.counts)
    together(scorers, [[9], [10], [trees[2].trunk + 3]])
    assert engine.counts[before:] == [2, 1]


@pytest.mark.parametrize(("drafted", "forwards"), [(3, 1), (20, 2)])
def test_few_rows_of_a_target_wait_for_lanes_that_draft_but_not_for_ever(tiny_model, drafted, forwards):
    target, draft = Counted(tiny_model().model), Counted(tiny_model().model)
    draft.joint.size = target.joint.size - 1
    first, second = target.attach(grow()), target.attach(grow())
    drafter = draft.attach(grow([(4, token) for token in range(drafted)]))
    for scorer in (first, second):
        scorer.score([4])
    read = len(target.counts)
    for scorer in (first, second, drafter):
        scorer.pause = pause

    def draft_and_verify() -> None:
        for node in range(drafted):
            drafter.score([5 + node])
        second.score([9])

    in_turns([lambda: first.score([10]), draft_and_verify])
    assert len(target.counts) - read == forwards


def test_rows_of_a_target_do_not_wait_for_a_lane_whose_run_is_paused_while_it_drafts(tiny_model):
    target, draft = Counted(tiny_model().model), Counted(tiny_model().model)
    draft.joint.size, draft.joint.paused, draft.joint.requests = 0, 1, 1
    turns, scorer = [], target.attach(grow())
    scorer.pause = lambda: turns.append(1) or True
    scorer.score([10])
    assert len(turns) == 2


def test_one_lanes_error_is_its_own(tiny_model):
    model = tiny_model()
    engine = Counted(model.model)
    trees, scorers = lanes_of(engine)
    engine.fails_at = LIMBS[-1][1]  # 200, the token of node 14
    first, second, third = together(scorers, [[14], [10], [trees[2].trunk + 3]])
    assert str(first) == "no memory"
    check(model, trees[1], 10, second[0])
    check(model, trees[2], trees[2].trunk + 3, third[0])


def test_a_lane_that_is_closed_while_it_waits_leaves_the_others_alone(tiny_model):
    model = tiny_model()
    engine = Counted(model.model)
    trees, scorers = lanes_of(engine)

    def closed() -> bool:
        raise KeyboardInterrupt

    scorers[1].pause = closed
    with pytest.raises(KeyboardInterrupt):
        scorers[1].score([10])
    assert not engine.joint.waiting
    scorers[1].close()
    scorers[0].pause = lambda: True
    check(model, trees[0], 10, scorers[0].score([10])[0])


def lane(models: dict, prompt: list[int], seed: int, callbacks=None, strategy: str = "sample") -> Lane:
    return Lane(strategy, prompt, models, {}, seed, Limits(max_new_tokens=12), callbacks=callbacks)


def test_lanes_that_start_together_read_their_common_prompt_once(tiny_model):
    model = tiny_model()
    makers = [lambda c, seed=seed: lane({"target": model}, PROMPT, seed, c) for seed in range(4)]
    lanes = in_company(makers)
    assert [one.trace.output() for one in lanes] == [
        lane({"target": model}, PROMPT, seed).run().output() for seed in range(4)
    ]
    prefills = [next(f for s in one.trace.steps for f in s.of(Forward)) for one in lanes]
    assert [forward.shared for forward in prefills[1:]] == [len(PROMPT)] * 3
    assert prefills[0].shared == 0


def test_the_seconds_of_joint_forwards_are_divided_among_their_lanes(tiny_model, monkeypatch):
    """Each lane pays for its rows: together they take what the forwards took, and not that for each lane."""
    model, now = tiny_model(), [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    real = model.engine._forward

    def slow(request):
        now[0] += 10.0
        return real(request)

    monkeypatch.setattr(model.engine.joint, "run", slow)
    makers = [lambda c, seed=seed: lane({"target": model}, [3, 4, seed], seed, c) for seed in range(4)]
    traces = [one.trace for one in in_company(makers)]
    assert all(0 < one.steps[-1].seconds < now[0] for one in traces)
    assert sum(one.steps[-1].seconds for one in traces) == pytest.approx(now[0])
    forwards = [f for one in traces for s in one.steps for f in s.of(Forward)]
    assert sum(f.seconds for f in forwards) == pytest.approx(now[0])
    for one in traces:
        timed = [f for s in one.steps for f in s.of(Forward)]
        assert all(a.start + a.seconds <= b.start + 1e-9 for a, b in zip(timed, timed[1:], strict=False))
