"""S2D: lazy keys and values are those of a full run, thresholds choose a draft, the text is the target's."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.engine.layers import Layers
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.speculative.drafters.sorted_exits import exits_of
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.testing import distance
from decoders.trace.events import Forward, Propose, Verdict
from decoders.trace.scores import Score
from tests.helpers import shipped_pair
from tests.helpers.deep_models import PROMPT, deep, run
from tests.helpers.losslessness import first_token, law_of_rounds, position

NEVER = {"threshold_1": 1.0, "threshold_2": 1.0}


@pytest.fixture(scope="module")
def target():
    return deep(layers=2, seed=1)


@pytest.fixture(scope="module")
def draft():
    return deep(layers=6)


def lane(target, draft, /, tokens: int = 16, **parameters) -> Lane:
    models = {"target": target, "draft": draft}
    return Lane("s2d", PROMPT, models, {"temperature": 0.0, **parameters}, limits=Limits(tokens))


def drafted_forwards(trace) -> list[Forward]:
    return [f for step in trace.steps for f in step.of(Forward) if f.model == "draft" and f.scope]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_catching_up_gives_the_keys_and_values_of_a_full_run(kind):
    """Tokens leave after 2, 4, 2, 2 layers; the fifth goes through all six, whatever waited."""
    model, tree = deep(kind), Tree(list(PROMPT))
    scorer, node, path = model.engine.attach(tree), tree.trunk - 1, []
    scorer.score([node])
    for token, depth in zip((50, 60, 51, 61, 52), (2, 4, 2, 2, 6), strict=True):
        node = tree.add(node, token)
        path.append(node)
        scorer.score_part([node], Layers.first(2, 6))
        while scorer.layers_read(node) < depth:
            logits = scorer.deepen([node], depth)
    assert [scorer.layers_read(n) for n in path] == [6] * 5
    keys = [tuple(part.clone() for part in scorer.seen_from(node).seen(layer)) for layer in range(6)]
    other, whole = Tree([*PROMPT, 50, 60, 51, 61, 52]), model.engine
    fresh = whole.attach(other)
    wanted = fresh.score([other.trunk - 1])
    torch.testing.assert_close(logits[-1:], wanted, atol=1e-9, rtol=1e-9)
    seen = fresh.seen_from(other.trunk - 1).seen
    for layer, parts in enumerate(keys):
        for ours, theirs in zip(parts, seen(layer), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)


def test_an_exit_says_what_a_run_of_its_layers_would_say(draft):
    """Exit 4 of a token, with others in front that left after 2: the logits of a plain run of four layers."""
    tree = Tree(list(PROMPT))
    scorer, node = draft.engine.attach(tree), tree.trunk - 1
    scorer.score([node])
    for token in (50, 60, 51):
        node = tree.add(node, token)
        scorer.score_part([node], Layers.first(2, 6))
    while scorer.layers_read(node) < 4:
        logits = scorer.deepen([node], 4)
    ids, blocks = torch.tensor([tree.text(node)]), draft.engine.blocks
    with blocks.running(Layers.first(4, 6)):
        plain = draft.model(ids).logits[0, -1]
    torch.testing.assert_close(logits[-1], plain, atol=1e-5, rtol=1e-4)  # transformers norms in float32
    with pytest.raises(ValueError, match="Only what the first layers have read"):
        scorer.deepen([tree.add(node, 52)], 6)


def test_thresholds_choose_the_draft(target, draft):
    """0: the first exit alone; 1 and 1: all layers always; between them between these in layers per token."""
    shallow = lane(target, draft, threshold_1=0.0, num_assistant_tokens=3).run()
    assert {f.scope for f in drafted_forwards(shallow)} == {"layers 1-2 of 6"}
    full = lane(target, draft, num_assistant_tokens=3, **NEVER).run()
    models = {"target": target, "draft": draft}
    settings = {"temperature": 0.0, "num_assistant_tokens": 3}
    plain = Lane("speculative", PROMPT, models, settings, limits=Limits(16)).run()
    guesses = [
        [(p.parent, p.token) for step in trace.steps for p in step.of(Propose)] for trace in (full, plain)
    ]
    assert guesses[0] == guesses[1]

    def layers(trace) -> float:
        proposed = sum(p.source == "draft" for step in trace.steps for p in step.of(Propose))
        return sum(f.tokens * f.share for f in drafted_forwards(trace)) / proposed

    scores = [s for step in full.steps for s in step.of(Score) if s.level == "exit 2"]
    middle = sorted(s.total for s in scores)[len(scores) // 2]
    between = lane(target, draft, threshold_1=middle, threshold_2=middle, num_assistant_tokens=3).run()
    assert layers(shallow) < layers(between) < layers(full)
    assert shallow.output() == between.output() == full.output() == run("greedy", target, tokens=16).output()


def test_a_token_leaves_at_the_first_exit_that_is_sure(target, draft):
    """Its scores are of one exit after the other, each above the limit only where the token left."""
    trace = lane(target, draft, threshold_1=0.2, threshold_2=0.2).run()
    for step in trace.steps[1:]:
        by_node: dict[int, list[Score]] = {}
        for score in step.of(Score):
            by_node.setdefault(score.node, []).append(score)
        for scores in by_node.values():
            assert [s.level for s in scores] == [f"exit {e}" for e in (2, 4, 6)[: len(scores)]]
            assert all(s.total <= s.limit for s in scores[:-1])
            assert scores[-1].total > scores[-1].limit
    assert len({len(step.of(Score)) for step in trace.steps}) > 1


def test_waiting_tokens_are_read_once(target, draft):
    """However they catch up, a token runs through each layer at most once while it stands in the text."""
    trace = lane(target, draft, threshold_1=0.15, threshold_2=0.15, num_assistant_tokens=4).run()
    caught = [f for f in drafted_forwards(trace) if "earlier" in f.scope]
    assert caught and all(f.tokens > 1 for f in caught)
    tokens = sum(f.tokens * f.share for f in drafted_forwards(trace))
    everything = sum(p.source == "draft" for step in trace.steps for p in step.of(Propose)) + 16
    assert tokens <= everything


def proposed(trace) -> list[tuple[int, int]]:
    """Parents and tokens of what the draft offered, round by round."""
    return [(p.parent, p.token) for step in trace.steps for p in step.of(Propose) if p.source == "draft"]


@pytest.mark.parametrize("slow", [False, True])
def test_branches_catch_up_together_as_a_full_run_reads_them(slow):
    """Two children wait below a token that waits; both go deeper, in another order than that of their birth,
    and a third child stays behind.
    """
    draft = deep(layers=6)
    if slow:
        draft.__dict__["engine"] = SequenceEngine(draft.model)
    tree = Tree(list(PROMPT))
    scorer, tip = draft.engine.attach(tree), tree.add(tree.trunk - 1, 50)
    scorer.score([tree.trunk - 1])
    scorer.score_part([tip], Layers.first(2, 6))
    below = [tree.add(tip, token) for token in (60, 51, 61)]
    scorer.score_part(below, Layers.first(2, 6))
    asked = [below[2], below[0]]
    while min(map(scorer.layers_read, asked)) < 6:
        logits = scorer.deepen(asked, 6)
    wanted = torch.cat([draft.model(torch.tensor([tree.text(node)])).logits[:, -1] for node in asked])
    torch.testing.assert_close(logits, wanted, atol=1e-5, rtol=1e-4)
    assert scorer.layers_read(below[1]) == 2


def test_of_all_layers_the_tree_is_that_of_the_whole_draft(target, draft):
    """Never left early, it is the tree that `speculation` grows of this draft; the text is greedy's."""
    size = {"num_assistant_tokens": 3, "width": 2, "nodes": 6}
    trace = lane(target, draft, tree="expand and rerank", **size, **NEVER).run()
    whole = {"shape": "expand and rerank", "depth": 3, "width": 2, "budget": 6, "temperature": 0.0}
    models = {"target": target, "draft": draft}
    plain = Lane("speculation", PROMPT, models, whole, limits=Limits(16)).run()
    assert proposed(trace) == proposed(plain)
    assert max(len(step.of(Propose)) for step in trace.steps) > 6  # of more candidates than are kept
    assert trace.output() == plain.output() == run("greedy", target, tokens=16).output()


def test_a_level_leaves_with_its_surest_node(target, draft):
    """The others go with it, however unsure; the levels differ, and waiting ones catch up."""
    size = {"tree": "expand and rerank", "num_assistant_tokens": 3, "width": 3, "nodes": 8}
    trace = lane(target, draft, threshold_1=0.08, threshold_2=0.09, **size).run()
    exits, beside = set(), 0
    for step in trace.steps[1:]:
        scores = step.of(Score)
        levels = [score for score in scores if "surest" in score.parts]
        for score in levels:
            limit, surest = score.limit, score.parts["surest"]
            assert score.total <= surest
            last = not any(s.node == score.node and s.level > score.level for s in levels)
            assert last == (surest > limit or score.level == "exit 6")
            exits |= {score.level} if last else set()
            beside += last and score.total <= limit
    assert len(exits) > 1 and beside
    assert any("earlier" in f.scope for f in drafted_forwards(trace))
    assert trace.output() == run("greedy", target, tokens=16).output()


@pytest.mark.parametrize("tree", ["chain", "expand and rerank"])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_the_law_is_the_targets(temperature, tree):
    small, large = deep(layers=3, vocabulary=3, seed=5), deep(layers=1, vocabulary=3, seed=4)
    settings = {"temperature": temperature, "num_assistant_tokens": 2, "threshold_1": 0.5, "threshold_2": 0.7}
    settings |= {"tree": tree, "width": 2, "nodes": 4}
    models = {"target": large, "draft": small}
    law = law_of_rounds(Exhaustive(), "s2d", models, settings, 3)
    exact = law_of_rounds(Exhaustive(), "sample", models, {"temperature": temperature}, 3)
    assert distance(law, exact) < 1e-9 and len(exact) == 27


def test_models_without_a_tree_mask_write_the_same(target, draft):
    slow = deep(layers=6)
    slow.__dict__["engine"] = SequenceEngine(slow.model)
    settings = {"threshold_1": 0.2, "threshold_2": 0.2}
    traces = [lane(target, one, tokens=8, **settings).run() for one in (draft, slow)]
    guesses = [[p.token for step in t.steps for p in step.of(Propose)] for t in traces]
    assert guesses[0] == guesses[1] and traces[0].output() == traces[1].output()


def test_exits_are_thirds_where_none_were_trained(draft):
    assert exits_of(draft) == [2, 4, 6] and exits_of(deep(layers=2)) == [1, 2]
    assert exits_of(deep(layers=1)) == [1]


def test_the_targets_own_draft_with_trained_exits_is_preferred(target, draft, monkeypatch):
    """Where one comes with the target; the draft that was chosen is taken if asked for, or has exits too."""
    own = deep(layers=3, seed=3)
    monkeypatch.setitem(target.__dict__, "sorted_draft", own)
    assert lane(target, draft).models["draft"] is own
    assert lane(target, draft, draft="as chosen").models["draft"] is draft
    monkeypatch.setattr("decoders.models.catalog.exits", lambda name: [1, 2])
    assert lane(target, draft).models["draft"] is draft


def test_the_shipped_pair_drafts_with_trained_exits():
    """Some of its guesses leave at the first of three exits and pass; the text is greedy's."""
    trace = shipped_pair.decode("s2d", shipped_pair.PROMPTS[0], length=24)
    assert trace.models["draft"] == "llama-tiny-sorted"
    assert trace.output() == shipped_pair.greedy(shipped_pair.PROMPTS[0])[:24]
    exits, passed = {}, []  # the exit that guessed below a node; those of accepted guesses
    for step in trace.steps:
        exits |= {score.node: score.level for score in step.of(Score)}  # the last one asked decides
        accepted = {verdict.node for verdict in step.of(Verdict) if verdict.status == "accepted"}
        passed += [exits.get(p.parent) for p in step.of(Propose) if p.node in accepted]
    assert "exit 1" in passed and set(exits.values()) <= {"exit 1", "exit 2", "exit 3"}


def test_the_published_test_bends_the_distribution_and_ours_does_not():
    """p = (.6, .4), and the top token of q = (.7, .3) is drafted: its probability becomes .857 by p / q."""
    laws = {}
    for name, verifier in {"p / q": RECURSIVE_REJECTION, "p alone": NODE_SAMPLING}.items():

        def drawn(chooser, verify=verifier.verify) -> int:
            return first_token(position([0.6, 0.4], [0], [0.7, 0.3], chooser, verify))

        laws[name] = Exhaustive().distribution(drawn)
    assert laws["p / q"][0] == pytest.approx(0.857, abs=1e-3)
    assert laws["p alone"][0] == pytest.approx(0.6)
    s2d = strategies()["s2d"]
    assert s2d.badge(s2d.check({"temperature": 1.0})) == "exact because drafts are deterministic"
