"""A*-decoding: the dossier's hand example, order and ties, budgets, and a scorer that knows the truth."""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.best_first import a_star as module
from decoders.search.best_first.a_star import State
from decoders.search.stepwise import scorers
from decoders.trace.events import Note, Propose, Verdict
from decoders.trace.scores import Rank, Score
from tests.helpers import tiny_models

END = 0


def run(model, prompt, new_tokens=20, seed=0, strategy="a_star", **parameters):
    return Lane(
        strategy, prompt, {"target": model}, parameters, seed, Limits(max_new_tokens=new_tokens)
    ).run()


def letters(row, count: int, **how) -> TableModel:
    """A model each of whose words is a line of its own: a token is a step. Token 0 ends a text."""
    return TableModel(row, count, frozenset({END}), words=["", *(f"{i}\n" for i in range(1, count))], **how)


def test_states_are_opened_in_the_order_of_the_hand_example(monkeypatch):
    """Root .5; below it .6 and .4; below .6: .3 and .65, a dead end; below .4: .9."""
    rewards = {(): 0.5, (1,): 0.6, (2,): 0.4, (1, 1): 0.3, (1, 2): 0.65, (2, 1): 0.9}
    below = {(): 2, (1,): 2, (2,): 1, (1, 1): 0, (1, 2): 0, (2, 1): 0}
    names, opened = {}, []

    def expand(lane, state):
        mine = names.get(state.node, ())
        opened.append((rewards[mine], round(state.f, 9)))
        children = []
        for i in range(1, below[mine] + 1):
            node = lane.propose(state.node, i, 0.0)
            names[node] = (*mine, i)
            children.append(State(node, (*state.turns, i - 1), [node], [*state.logprobs, 0.0]))
        yield
        if not children:  # a dead end: what is below it is never good
            node = lane.propose(state.node, 3, 0.0)
            names[node] = None
            children.append(State(node, (*state.turns, 0), [node], [*state.logprobs, 0.0]))
        return children

    monkeypatch.setattr(module, "expand", expand)
    monkeypatch.setattr(
        scorers.Scorer,
        "score",
        lambda self, node, whole: -50.0 if names.get(node, ()) is None else rewards[names.get(node, ())],
    )
    lane = Lane("a_star", [1], {"target": letters(lambda past: [0.1, 0.3, 0.3, 0.3], 4)}, {})
    while len(opened) < 6:
        lane.advance()
    lane.close()
    order = [(0.5, 0.5), (0.6, 0.4), (0.65, 0.35), (0.4, 0.7), (0.9, 0.2), (0.3, 1.0)]
    assert [(r, pytest.approx(f)) for r, f in opened] == order


@pytest.mark.parametrize("seed", range(4))
def test_with_one_sample_it_is_plain_sampling(prompt, seed):
    model, settings = tiny_models.make(endings=0.05), {"temperature": 0.9, "top_k": 30}
    plain = run(model, prompt, seed=seed, strategy="sample", **settings)
    assert run(model, prompt, seed=seed, num_samples=1, **settings).output() == plain.output()


def test_where_all_is_equally_good_it_goes_straight_down(monkeypatch):
    """Equal f: depth first, and a text of four steps costs four times num_samples."""
    monkeypatch.setattr(scorers.Scorer, "score", lambda self, node, whole: 0.5)
    model = letters(lambda past: [1.0, 0, 0, 0] if len(past) == 4 else [0.0, 0.4, 0.3, 0.3], 4)
    found = run(model, [1], num_samples=3, temperature=1.0)
    assert found.output()[-1] == END and len(found.output()) == 4
    sampled = [e for step in found.steps for e in step.of(Propose)]
    assert len(sampled) == 4 * 3


def right(tokens: list[int]) -> bool:
    """The truth of a small world: 1, 2, 3 in this order, then the end."""
    return tokens == [1, 2, 3, END][: len(tokens)]


@pytest.mark.parametrize("seed", range(6))
def test_with_a_perfect_scorer_no_wrong_beginning_is_opened_while_a_right_one_waits(monkeypatch, seed):
    def truth(self, node, whole):
        path = self.lane.tree.path(node, above=self.lane.tree.trunk - 1)
        self.calls += 1
        return float(right([self.lane.tree.tokens[n] for n in path]))

    monkeypatch.setattr(scorers.Scorer, "score", truth)
    found = run(
        letters(lambda past: [0.25] * 4, 4), [1], 6, seed, num_samples=4, temperature=1.0, max_calls=400
    )
    nodes, text, waiting = found.nodes(), {}, {}
    for step in found.steps:
        for event in step.events:
            if isinstance(event, Propose):
                text[event.node] = [*text.get(event.parent, []), event.token]
                if waiting.pop(event.parent, None) is False:
                    assert not any(waiting.values())
            if isinstance(event, Score):
                waiting[event.node] = right(text[event.node])
    assert nodes
    if any(text == [1, 2, 3, END] for text in text.values()):
        assert found.output() == [1, 2, 3, END]


def test_f_is_what_the_identity_says(prompt):
    """f = h0 + 2 * (what h rose in all) - (what it fell) along every path."""
    found = run(tiny_models.make(endings=0.05), prompt, step="sentence", words=3, max_calls=30)
    scores = {e.node: e for s in found.steps for e in s.of(Rank) if e.name == "priority"}
    parents = {node: parent for node, (parent, _) in found.nodes().items()}
    start = None
    for node, event in scores.items():
        path, at = [], node
        while at in parents:
            if at in scores:
                path.append(scores[at].parts["h"])
            at = parents[at]
        hs = path[::-1]
        rises = [max(0.0, b - a) for a, b in zip(hs, hs[1:], strict=False)]
        falls = [max(0.0, a - b) for a, b in zip(hs, hs[1:], strict=False)]
        first = event.parts["g"] + event.parts["h"] - 2 * sum(rises) + sum(falls)
        h0 = 0.0  # a beginning without words is not too long: its reward is 1
        start = h0 + 2 * max(0.0, hs[0] - h0) - max(0.0, h0 - hs[0])
        assert first == pytest.approx(start)
        assert event.total == pytest.approx(-event.parts["g"] - event.parts["h"])
    assert start is not None


def test_the_scorer_is_asked_no_more_than_allowed(prompt):
    model = tiny_models.make(endings=0.05)
    found = run(model, prompt, 30, step="sentence", words=3, max_calls=9, num_samples=3)
    opened = {e.parent for s in found.steps for e in s.of(Propose)}
    scores = [e for s in found.steps for e in s.of(Rank) if e.name == "priority"]
    assert len(scores) <= 3 * len(opened) and len(scores) + 1 <= 9 + 3
    notes = [e.text for s in found.steps for e in s.of(Note)]
    assert "texts were scored" in notes[-1]


def test_equal_steps_count_once():
    model = letters(lambda past: [0.0, 1.0] if len(past) < 4 else [1.0, 0.0], 2)
    found = run(model, [1], num_samples=5, temperature=1.0)
    pruned = [e for s in found.steps for e in s.of(Verdict) if e.status == "pruned"]
    assert len(pruned) == 4 * 4 and "the same step as sample 1" in pruned[0].reason
    assert found.output() == [1, 1, 1, END]


def test_without_a_whole_text_greedy_finishes_the_best_beginning():
    model = letters(lambda past: [0.0, 0.6, 0.4], 3)
    found = run(model, [1], 8, num_samples=2, max_calls=3, words=1)
    assert len(found.output()) == 8 and found.output()[3:] == [1] * 5
    assert any("no text is complete" in e.text for s in found.steps for e in s.of(Note))
