"""EAGLE-3, Chimera, Falcon, Gumiho and AdaEAGLE as strategies: exact, and what their papers say of them."""

import math

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import Eagle3, Gumiho, Target, take_taps
from decoders.heads.parts.module import DraftModule, Sees
from decoders.heads.scorers.adaeagle import UNASKED, AdaEagle, accepted_lengths
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.table_model import exact_distribution
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Propose, Verdict
from decoders.trace.scores import Measure, Score
from tests.helpers import tiny_models
from tests.helpers.headed_tables import HeadedTable, shared
from tests.helpers.losslessness import law_of_rounds

SMALL = {"serial_width": 2, "parallel_width": 2, "nodes": 3, "borrowed": 2}


def greedy_text(target, prompt, new_tokens=30):
    return tiny_models.generate(target, prompt, max_new_tokens=new_tokens)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_adaeagle_of_any_length_leaves_the_targets_law(length):
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    target.heads["adaeagle"] = Constant(length)
    parameters = {"temperature": 1.2}
    law = law_of_rounds(Exhaustive(), "adaeagle", {"target": target}, parameters, 4, rounds=2)
    assert distance(law, exact_distribution(target, (0,), 4, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("parameters", [{"joint_stop": True}, {"predictor": "fixed length"}])
def test_adaeagles_options_leave_the_targets_law(parameters):
    """The joint stop looks at what was drawn, and stops after it: nothing is thrown away."""
    target = HeadedTable(random_table(5, 3, 1.5), 3)
    target.heads["adaeagle"] = Constant(1)
    parameters = {"temperature": 1.0, "num_assistant_tokens": 2, **parameters}
    law = law_of_rounds(Exhaustive(), "adaeagle", {"target": target}, parameters, 4, rounds=2)
    assert distance(law, exact_distribution(target, (0,), 4, shape_of(parameters))) < 1e-12


def test_gumihos_tree_leaves_the_targets_law():
    target = HeadedTable(random_table(3, 3, 1.5), 3)
    parameters = {"temperature": 1.2, **SMALL}
    law = law_of_rounds(Exhaustive(), "gumiho", {"target": target}, parameters, 4, rounds=2)
    assert distance(law, exact_distribution(target, (0,), 4, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("strategy", ["gumiho", "adaeagle"])
def test_at_temperature_0_they_write_greedys_text(strategy):
    target = tiny_models.make("llama", seed=2)
    prompt = target.encode("the cat sat")
    lane = Lane(strategy, prompt, {"target": target}, {"temperature": 0.0}, limits=Limits(30))
    assert lane.run().output() == greedy_text(target, prompt)


def test_eagle3_is_lossless_although_its_vocabulary_is_cut():
    """No token outside of it is ever drafted, and the text has some all the same."""
    target = tiny_models.make("llama", seed=2)
    torch.manual_seed(0)
    target.heads = {"eagle3": Eagle3(Target.of(target.model), words_kept=40).eval().requires_grad_(False)}
    prompt = target.encode("the cat sat")
    lane = Lane("eagle3", prompt, {"target": target}, {"temperature": 0.0}, limits=Limits(30))
    trace = lane.run()
    assert trace.output() == greedy_text(target, prompt)
    drafted = {e.token for s in trace.steps for e in s.of(Propose) if e.source == "draft"}
    assert drafted and drafted < set(range(40)) and not set(trace.output()) <= set(range(40))


def test_eagle3_under_a_constraint_that_allows_only_tokens_it_lacks():
    """The target writes what is allowed; the draft is uniform over it, and nothing breaks."""
    target = tiny_models.make("llama", seed=2)
    torch.manual_seed(0)
    target.heads = {"eagle3": Eagle3(Target.of(target.model), words_kept=3).eval().requires_grad_(False)}
    parameters = {"constraint": "regex", "constraint_text": "[a-c]{8}", "temperature": 1.0, "tree": "chain"}
    trace = Lane("eagle3", [5, 6], {"target": target}, parameters, limits=Limits(8)).run()
    assert set(trace.text()[-8:]) <= set("abc")


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_falcons_passes_are_one_for_each_two_levels(depth):
    target = tiny_models.make("llama", seed=4)
    parameters = {"tree": "widths", "width": 2, "depth": depth, "nodes": 64}
    trace = Lane("falcon", [5, 6, 7], {"target": target}, parameters, limits=Limits(20)).run()
    rounds = [s for s in trace.steps[1:] if s.of(Propose) and len(s.of(Propose)) > 2 ** (depth + 1) - 4]
    assert rounds
    for step in rounds:
        drafts = [e for e in step.of(Forward) if e.model == "draft"]
        assert len(drafts) == math.ceil(depth / 2)


def test_the_theorem_on_gumihos_card():
    """Expected accepted tokens with the same sum of rates: more where the early ones are larger."""

    def accepted(*rates):
        return sum(math.prod(rates[: j + 1]) for j in range(len(rates)))

    assert accepted(0.8, 0.8, 0.8) == pytest.approx(1.952)
    assert accepted(0.9, 0.8, 0.7) == pytest.approx(2.124)
    assert accepted(0.7, 0.8, 0.9) == pytest.approx(1.764)


def test_gumiho_without_parallel_networks_is_eagle2_of_two_levels():
    """The same head, once with the shape of each strategy: the same nodes in every round."""
    target = tiny_models.make("llama", seed=2)
    torch.manual_seed(4)
    head = Gumiho(Target.of(target.model), parallel=0).eval().requires_grad_(False)
    target.heads = {"gumiho": head, "eagle": head}
    mine = {"serial_width": 3, "nodes": 5, "borrowed": 4}
    theirs = {"tree": "expand and rerank", "width": 3, "depth": 2, "nodes": 5}
    traces = [
        Lane(name, [5, 6], {"target": target}, asked, limits=Limits(15)).run()
        for name, asked in (("gumiho", mine), ("eagle2", theirs))
    ]
    kept = []
    for trace in traces:
        tokens = {e.node: e.token for s in trace.steps for e in s.of(Propose)}
        pruned = {v.node for s in trace.steps for v in s.of(Verdict) if v.status == "pruned"}
        drafted = [
            {(tokens.get(e.parent), e.token) for e in s.of(Propose) if e.node not in pruned}
            for s in trace.steps
        ]
        kept.append(drafted)
    assert kept[0] == kept[1] and max(len(drafted) for drafted in kept[0]) == 6


class Scripted(DraftModule):
    """Guesses by a table: the drafted path -> {token: probability}; deeper than two, by the pair above."""

    sees, depth = Sees(root=True, path=True), 5

    def __init__(self, target: Target, table: dict):
        super().__init__(target)
        self.table = table

    def memory(self):
        return []

    def begin(self, memory, hidden, tokens, states=None):
        memory[:] = [()]
        return self.row(())

    def expand(self, memory, parents, tokens):
        paths = [(*memory[p], t) for p, t in zip(parents, tokens.tolist(), strict=True)]
        memory += paths
        return torch.stack([self.row(path) for path in paths])

    def row(self, path: tuple) -> torch.Tensor:
        key = (path[:2], len(path)) if len(path) > 2 else path
        probs = torch.full((len(self.target.head),), 1e-6)
        for token, share in self.table.get(key, {}).items():
            probs[token] = share
        return probs.log()


def test_borrowed_nodes_have_ancestors_of_their_own():
    """A B C is followed by D, but A2 B2 C by X: had A2 B2 shared the node of C, the target's token after it
    would have been D. As a node of its own it is verified after A2 B2, and its borrowed D is rejected.
    """
    r, a, b, c, d, a2, b2, x = range(8)
    follows = {(r,): a2, (r, a2): b2, (r, a2, b2): c, (r, a, b, c): d, (r, a2, b2, c): x}

    def table(tokens):
        row = [0.0] * 8
        row[follows.get(tuple(t for t in tokens[1:]), r)] = 1.0
        return row

    target = HeadedTable(table, 8)
    rows = {(): {a: 0.5, a2: 0.4}, (a,): {b: 0.9}, (a, b): {c: 0.9}, ((a, b), 3): {d: 0.9}, (a2,): {b2: 0.9}}
    rows[(a2, b2)] = {c: 0.3, x: 0.1}
    target.heads = {"gumiho": Scripted(shared(8), rows)}
    parameters = {"temperature": 0.0, "serial_width": 2, "parallel_width": 2, "nodes": 6, "borrowed": 4}
    trace = Lane("gumiho", [r], {"target": target}, parameters, limits=Limits(6)).run()
    assert trace.output()[:5] == [r, a2, b2, c, x]
    step = trace.steps[1]
    born = {e.node: e for e in step.of(Propose)}
    lent = [e for e in born.values() if e.source == "borrowed"]
    assert [e.token for e in lent] == [c, d] and lent[1].parent == lent[0].node
    parent = born[lent[0].parent]
    assert (parent.token, born[parent.parent].token) == (b2, a2)
    status = {v.node: v.status for v in step.of(Verdict)}
    assert [status[e.node] for e in lent] == ["accepted", "rejected"]
    assert len([e for e in born.values() if e.token == c and e.source == "parallel"]) >= 1


class Watched(Scripted):
    """Keeps the paths that it was asked to go on from."""

    def __init__(self, target: Target, table: dict):
        super().__init__(target, table)
        self.asked = []

    def expand(self, memory, parents, tokens):
        self.asked += [(*memory[p], t) for p, t in zip(parents, tokens.tolist(), strict=True)]
        return super().expand(memory, parents, tokens)


def test_a_leaf_whose_own_children_were_pruned_borrows_from_its_own_path():
    """What the networks said after it is known, so it is not asked for again; tails follow its own path."""
    r, a, b, c, d, a2, b2, x = range(8)
    target = HeadedTable(lambda tokens: [1.0, *[0.0] * 7], 8)
    rows = {(): {a: 0.5, a2: 0.4}, (a,): {b: 0.9}, (a2,): {b2: 0.9}, (a2, b2): {x: 0.1}}
    rows |= {(a, b): {c: 0.9}, ((a, b), 3): {d: 0.9}, ((a, b), 4): {x: 0.9}}
    head = Watched(shared(8), rows)
    target.heads = {"gumiho": head}
    parameters = {"temperature": 0.0, "serial_width": 2, "parallel_width": 2, "nodes": 7, "borrowed": 4}
    lane = Lane("gumiho", [r], {"target": target}, parameters, limits=Limits(8))
    lane.advance()
    lane.advance()
    born = lane.trace.steps[1].of(Propose)
    paths = {}
    for one in born:
        paths[one.node] = (*paths.get(one.parent, ()), one.token)
    assert (a2, b2, c, d, x) in [paths[one.node] for one in born if one.source == "borrowed"]
    assert (a2, b2, c, d) in head.asked and set(head.asked) <= set(paths.values())
    assert len(set(head.asked)) == len(head.asked)


class Constant(AdaEagle):
    """Always expects the same length."""

    def __init__(self, length: float):
        torch.nn.Module.__init__(self)
        self.expected = length

    def length(self, hidden, token):
        return self.expected


def test_a_constant_predictor_is_a_fixed_length():
    target = tiny_models.make("llama", seed=2)
    target.heads["adaeagle"] = Constant(2.6)
    models = {"target": target}
    ours = Lane("adaeagle", [5, 6], models, {}, limits=Limits(20)).run()
    chain = Lane("eagle", [5, 6], models, {"tree": "chain", "depth": 3}, limits=Limits(20)).run()
    drafted = [[(e.parent, e.token) for e in s.of(Propose)] for s in ours.steps]
    assert drafted == [[(e.parent, e.token) for e in s.of(Propose)] for s in chain.steps]
    expected = [e for s in ours.steps for e in s.of(Measure) if e.name == "expected length"]
    assert {e.parts["drafted"] for e in expected} == {3.0} and {e.total for e in expected} == {2.6}


def test_an_oracle_of_the_length_has_nothing_rejected():
    """The predictor that knows what will be accepted; on the shipped target, whose layer is right often."""
    target = load("llama-tiny")
    prompt = target.encode("Once upon a time")
    longest = Lane(
        "eagle", prompt, {"target": target}, {"tree": "chain", "depth": 6}, limits=Limits(40)
    ).run()
    text = torch.tensor([[*prompt, *longest.output()]])
    with torch.no_grad():
        labels = accepted_lengths(target.heads["eagle"].along(take_taps(target.model, text), 6), text)[0]
    lane = Lane("adaeagle", prompt, {"target": target}, {}, limits=Limits(34))

    class Oracle(Constant):
        def length(self, hidden, token):
            return float(labels[lane.tree.depths[lane.tip] - 1])

    target.heads["adaeagle"] = Oracle(0)
    trace = lane.run()
    statuses = {v.status for s in trace.steps for v in s.of(Verdict)}
    assert trace.output() == longest.output()[:34]
    assert "rejected" not in statuses and "accepted" in statuses


def test_the_label_of_adaeagle():
    """The dossier's example: the text goes on "cat sat on a mat", the drafter says "cat sat in a": 2."""
    words = ["so", "the", "cat", "sat", "on", "a", "mat"]
    ids = {word: at for at, word in enumerate(sorted({*words, "in"}))}
    text = torch.tensor([[ids[word] for word in words]])
    said = torch.full((1, 5, len(ids)), -1.0)
    guesses = [said[:, : 6 - k].clone() for k in range(1, 5)]
    for logits, word in zip(guesses, ["cat", "sat", "in", "a"], strict=True):
        logits[0, 0, ids[word]] = 1.0
    assert accepted_lengths(guesses, text)[0].tolist()[0] == 2
    assert accepted_lengths(guesses, text)[0, -1] == UNASKED


def test_drift_is_the_distance_from_the_targets_own_feature():
    """At the root it is that of the module's guess from true features alone: what `along` gives."""
    target = load("llama-tiny")
    prompt = target.encode("Once upon a time")
    trace = Lane("eagle", prompt, {"target": target}, {"tree": "chain", "depth": 4}, limits=Limits(24)).run()
    text = torch.tensor([[*prompt, *trace.output()]])
    with torch.no_grad():
        taps = take_taps(target.model, text)
        said = target.heads["eagle"].unrolled(taps, 1)[0][0]
    depth = {node: at for at, node in enumerate(range(len(prompt)))}
    for step in trace.steps:
        for event in step.of(Propose):
            depth[event.node] = depth[event.parent] + 1
    found = 0
    for step in trace.steps:
        for event in step.of(Score):
            if event.name == "drift" and event.level == "depth 0" and depth[event.node] - 1 < len(said):
                at = depth[event.node]
                apart = 1 - torch.cosine_similarity(said[at - 1], taps.hidden[0, at], dim=0)
                assert event.total == pytest.approx(float(apart), abs=5e-3)
                found += 1
    assert found > 3
