"""Drafts made of chains that share prefixes, and Clover's cuts: the dossier's examples and what their words
promise.
"""

import itertools
import math
from collections import Counter

import pytest
import torch

from decoders.heads import take_taps
from decoders.lane import Lane, Limits
from decoders.speculative.drafters.beams import packed
from decoders.speculative.drafters.cut_trees import cut_children
from decoders.trace.events import Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers import tiny_models


def test_the_worked_packing():
    """Three beams: 8 of 12 entries are read; both 104s stay apart, since what is before them differs."""
    rows = [[101, 102, 103, 104], [101, 102, 203, 204], [101, 102, 303, 104]]
    kept, unpacked = packed(rows)
    assert kept == [0, 1, 2, 3, 6, 7, 10, 11]
    assert unpacked == [[0, 1, 2, 3], [0, 1, 4, 5], [0, 1, 6, 7]]


def test_packing_has_one_place_for_each_distinct_prefix():
    rows = torch.randint(0, 3, (12, 5), generator=torch.Generator().manual_seed(0)).tolist()
    rows = [[0, *row] for row in rows]
    kept, unpacked = packed(rows)
    prefixes = {tuple(row[: at + 1]) for row in rows for at in range(6)}
    flat = list(itertools.chain(*rows))
    assert len(kept) == len(prefixes)
    assert [[flat[kept[place]] for place in row] for row in unpacked] == rows


def drafts(strategy: str, **asked):
    """Of each round of a lane on a tiny target: the chains that were kept, with their log-probabilities, the
    best first; the kept nodes; the scores of packing; all nodes that were proposed.
    """
    target = tiny_models.make("llama", seed=2)
    trace = Lane(strategy, [5, 6, 7], {"target": target}, asked, limits=Limits(20)).run()
    found = []
    for step in trace.steps:
        born = {e.node: e for e in step.of(Propose) if e.source == "draft"}
        lost = {v.node for v in step.of(Verdict) if v.status == "pruned"}
        kept = {node: e for node, e in born.items() if node not in lost}
        leaves = [node for node in kept if node not in {e.parent for e in kept.values()}]
        chains = []
        for leaf in leaves:
            path, total = [], 0.0
            while leaf in kept:
                path.insert(0, kept[leaf].token)
                total += kept[leaf].logprob
                leaf = kept[leaf].parent
            chains.append((total, path))
        scores = [e for e in step.of(Measure) if e.name == "packed"]
        found.append((sorted(chains, reverse=True), kept, scores, born))
    return found


def test_one_beam_is_the_greedy_chain():
    one = drafts("redrafter", tree="beams", width=1, depth=4)
    chain = drafts("redrafter", tree="chain", depth=4)
    paths = [[[path for _, path in chains] for chains, *_ in rounds] for rounds in (one, chain)]
    assert paths[0] == paths[1]
    assert max(len(path) for chains, *_ in one for _, path in chains) == 4


def test_a_beam_takes_no_token_of_probability_0():
    rounds = drafts("redrafter", tree="beams", width=4, depth=3, nodes=64, temperature=0.8, top_k=2)
    guesses = [e for *_, born in rounds for e in born.values()]
    assert guesses and all(e.logprob > -math.inf for e in guesses)
    siblings = Counter((number, e.parent) for number, (*_, born) in enumerate(rounds) for e in born.values())
    assert max(siblings.values()) == 2


def test_beams_are_distinct_chains_whose_prefixes_are_the_nodes():
    for chains, kept, scores, _ in drafts("redrafter", tree="beams", width=4, depth=3, nodes=64)[1:]:
        if not chains:
            continue
        assert len(chains) <= 4 and len({tuple(path) for _, path in chains}) == len(chains)
        prefixes = {tuple(path[: at + 1]) for _, path in chains for at in range(len(path))}
        assert len(kept) == len(prefixes)
        assert scores[0].total == 1 + len(prefixes)
        assert scores[0].parts["entries"] == sum(1 + len(path) for _, path in chains)


def test_wide_beams_find_the_best_chains_of_all():
    """As wide as the vocabulary, beam search of two levels forgets nothing: the best chain is the best."""
    target = tiny_models.make("llama", seed=2)
    module = target.heads["redrafter"]
    trace = Lane(
        "redrafter", [5, 6, 7], {"target": target}, {"width": 16, "depth": 2, "nodes": 128}, limits=Limits(4)
    ).run()
    step = next(step for step in trace.steps[1:] if step.of(Propose))
    born = {e.node: e for e in step.of(Propose) if e.source == "draft"}
    best = max(e.logprob + born[e.parent].logprob for e in born.values() if e.parent in born)
    text, memory = [5, 6, 7, trace.output()[0]], module.memory()  # the first round's root is the first token
    taps = take_taps(target.model, torch.tensor([text]))
    first = module.begin(memory, taps.hidden[0, -2:-1], torch.tensor(text[-1:])).log_softmax(-1)
    below = module.expand(memory, [0] * 259, torch.arange(259)).log_softmax(-1)
    assert best == pytest.approx(float((first[:, None] + below).max()), abs=1e-4)


def test_the_best_chains_are_the_likeliest_of_sixty():
    """The first round's five chains against all sixty, by the module itself; losers of the last level, which
    cost no forward, are never written down.
    """
    target = tiny_models.make("llama", seed=2)
    module, settings = target.heads["mlp_speculator"], {"width": 5, "depth": 3, "nodes": 64}
    trace = Lane("mlp_speculator", [5, 6, 7], {"target": target}, settings, limits=Limits(8)).run()
    step = next(step for step in trace.steps[1:] if step.of(Propose))
    born = {e.node: e for e in step.of(Propose) if e.source == "draft"}
    text, memory = [5, 6, 7, trace.output()[0]], module.memory()
    first = module.begin(
        memory, take_taps(target.model, torch.tensor([text])).hidden[0, -2:-1], torch.tensor(text[-1:])
    )
    chains = {(int(t),): float(v) for v, t in zip(*first.log_softmax(-1).topk(5), strict=True)}
    for children in (4, 3):
        parents = [0] * 5 if children == 4 else [1 + at // 4 for at in range(20)]
        said = module.expand(memory, parents, torch.tensor([chain[-1] for chain in chains]))
        grown = {}
        for (chain, total), row in zip(chains.items(), said.log_softmax(-1), strict=True):
            grown |= {(*chain, int(t)): total + float(v) for v, t in zip(*row.topk(children), strict=True)}
        chains = grown
    assert len(chains) == 60
    best = sorted(chains, key=chains.get, reverse=True)[:5]

    def tokens(node: int) -> tuple[int, ...]:
        return (*tokens(born[node].parent), born[node].token) if node in born else ()

    ends = [node for node in born if len(tokens(node)) == 3]
    assert len(born) == 5 + 20 + 5 and [tokens(node) for node in ends] == best


def test_the_worked_cuts():
    """.5 .3 .15 .03 .02: three; .8 .15 .05: one, for .15 is below a quarter of .8."""
    assert cut_children(torch.tensor([0.5, 0.3, 0.15, 0.03, 0.02]), 0.9, 0.25) == 3
    assert cut_children(torch.tensor([0.8, 0.15, 0.05]), 0.9, 0.25) == 1
    assert cut_children(torch.tensor([0.8, 0.15, 0.05]), 0.9, 0.0) == 2
    assert cut_children(torch.tensor([0.97, 0.02, 0.01]), 0.9, 0.0) == 1


@pytest.mark.parametrize("nodes", [1, 4, 9])
def test_clovers_tree_has_no_more_nodes_than_its_budget(nodes):
    counts = [len(kept) for _, kept, *_ in drafts("clover", nodes=nodes, depth=3)[1:]]
    assert counts and max(counts) <= nodes and max(counts) >= min(nodes, 3)
