"""REST's worked example and law, its store against a plain search, and RASD with one source or both."""

import math
import os
import random

import pytest
import torch

from decoders import datastore
from decoders.chooser import Exhaustive
from decoders.datastore import END, frequent, retrieve, sorted_store
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.dynamic_trees import expand_and_rerank
from decoders.speculative.interfaces import FIXED, Draft, Drafter, VerifierInput, drafted
from decoders.speculative.methods import rest
from decoders.speculative.methods.rasd import with_retrieved_continuations
from decoders.speculative.methods.rest import TEXT, retrieved
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Propose, Verdict
from tests.helpers import losslessness
from tests.helpers.losslessness import law_of_rounds


class Reading(TableModel):
    """A table model that reads texts of the letters a, b and c."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - 97 for letter in text]


@pytest.fixture
def letters(monkeypatch):
    """A store of three-letter texts in the place of the shipped one."""
    short = ["abcabacca", "aabcb", "cab", "bbaab"]
    monkeypatch.setattr(
        rest, "encoded", lambda name, model: datastore.concatenated_texts([model.encode(t) for t in short])
    )


def test_the_worked_example():
    """[4,5,6], [4,5,7], [4,8], [9,5]: with three nodes 4, 4-5 and, of those counted once, 9."""
    runs = [(4, 5, 6), (4, 5, 7), (4, 8), (9, 5)]
    assert frequent(runs, 3) == {(4,): 3, (4, 5): 2, (9,): 1}
    assert frequent(runs, 64)[4, 5, 6] == 1 and len(frequent(runs, 64)) == 7


def test_the_store_finds_what_a_plain_search_finds():
    rng = random.Random(0)
    texts = [[rng.randrange(3) for _ in range(rng.randrange(1, 30))] for _ in range(20)]
    store = sorted_store(datastore.concatenated_texts(texts))
    for _ in range(200):
        tail = [rng.randrange(3) for _ in range(rng.randrange(1, 6))]
        want = sorted(
            tuple(text[at + len(tail) : at + len(tail) + 4])
            for text in texts
            for at in range(len(text) - len(tail))
            if text[at : at + len(tail)] == tail
        )
        assert sorted(store.after(tail, 4)) == want


def test_the_longest_end_with_a_continuation_is_used():
    store = sorted_store((1, 2, 3, 4, END, 9, 2, 3, 5, END, 7, 8, END))
    assert retrieve(store, [1, 2, 3], 8, 2, 4) == (3, [(4,)])
    n, found = retrieve(store, [6, 2, 3], 8, 2, 4)
    assert n == 2 and sorted(found) == [(4,), (5,)]
    assert retrieve(store, [7, 8], 8, 2, 4) == (0, [])  # nothing follows, not even of the next text
    assert retrieve(store, [3], 8, 2, 4) == (0, [])


def test_a_round_drafts_shares_of_the_store(letters):
    table = Reading(lambda tokens: [0.2, 0.7, 0.1], 3)
    lane = Lane("rest", [2, 0], {"target": table}, {"continuation": 2}, limits=Limits(8))
    step = lane.advance()
    found = [(e.token, e.logprob) for e in step.of(Propose) if e.source == "store"]
    assert found == [(1, 0.0), (0, math.log(0.5))]  # "ca" is followed by "ba" once, and by "b" alone once
    lane.close()


@pytest.mark.parametrize("store", ["stories", TEXT])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
def test_drawn_text_has_the_target_s_law(letters, store, shape, eos):
    models = {"target": Reading(random_table(3, sharpness=2), 3, eos)}
    models["draft"] = TableModel(random_table(4, sharpness=2), 3, eos)
    parameters = {"store": store, "continuation": 2, **shape}
    for strategy, more in (("rest", {}), ("rasd", {"plausible": 1, "draft_budget": 2})):
        law = law_of_rounds(Exhaustive(), strategy, models, {**parameters, **more}, 3)
        assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("store", ["stories", "problems", TEXT])
def test_the_text_is_greedy_s(tiny_model, prompt, store):
    models = {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}
    greedy = Lane("greedy", prompt, models, limits=Limits(24)).run()
    for strategy in ("rest", "rasd"):
        trace = Lane(strategy, prompt, models, {"store": store}, limits=Limits(24)).run()
        assert trace.output() == greedy.output()


MODELS = {
    "target": Reading(random_table(11, sharpness=3), 3),
    "draft": TableModel(random_table(12, sharpness=3), 3),
}


def outcomes(drafter: Drafter, rounds_run: int = 6) -> list[tuple[list[int], list[int]]]:
    """Round by round: tokens of the draft that the target saw, and tokens committed."""
    lane = Lane("rasd", [2, 0], MODELS, limits=Limits(60))
    watching, found = Watching(drafter), []
    turns = rounds(lane, watching, GREEDY_MATCH)
    for _ in range(rounds_run):
        next(turns)
        found.append(watching.last)
    lane.close()
    return found


class Watching:
    """A drafter that remembers its last draft and what became of it."""

    def __init__(self, drafter: Drafter):
        self.drafter, self.last, self.reads_states = drafter, None, drafter.reads_states

    def propose(self, lane: Lane) -> Draft:
        return self.drafter.propose(lane)

    def observe(self, lane, draft, verification, seen) -> None:
        tokens = lane.tree.tokens
        self.last = (
            [tokens[n] for n in draft.nodes],
            [*(tokens[n] for n in verification.path), verification.token],
        )


def model_tree() -> Drafter:
    return drafted(DRAFT_MODEL, expand_and_rerank(2, 2, 4))


def look(lane: Lane):
    """All runs of the letters' store."""
    return rest.retriever(
        {"store": "stories", "max_matching_ngram_size": 4, "continuation": 3, "budget": 24}
    )(lane)


def test_without_a_store_rasd_is_the_draft_model_s_tree():
    assert outcomes(with_retrieved_continuations(model_tree(), lambda lane: (0, {}, 0), 3)) == outcomes(
        model_tree()
    )


def test_without_a_draft_model_rasd_is_rest(letters):
    nothing = Drafter(lambda lane: Draft(lane.tip), FIXED, "draft")
    assert outcomes(with_retrieved_continuations(nothing, look, 3)) == outcomes(retrieved(look))


def test_both_sources_accept_no_less_than_either(letters):
    """From the same text, with room for all nodes."""
    both, better = with_retrieved_continuations(model_tree(), look, 3), 0
    for seed in range(12):
        rng, length = random.Random(seed), {}
        prompt = [rng.randrange(3) for _ in range(5)]
        for name, drafter in (("both", both), ("model", model_tree()), ("store", retrieved(look))):
            lane = Lane("rasd", prompt, MODELS, limits=Limits(20))
            watching = Watching(drafter)
            next(rounds(lane, watching, GREEDY_MATCH))
            length[name] = len(watching.last[1])
            lane.close()
        assert length["both"] >= max(length["model"], length["store"])
        better += length["both"] > length["model"]
    assert better


def test_a_continuation_that_the_draft_model_holds_for_unlikely_is_pruned(letters):
    draft = TableModel(lambda tokens: [0.7, 0.0, 0.3], 3)
    lane = Lane("rasd", [2, 0], {**MODELS, "draft": draft}, {"plausible": 1}, limits=Limits(20))
    step = lane.advance()
    tokens = {e.node: e.token for e in step.of(Propose) if e.source == "store"}
    (pruned,) = (v for v in step.of(Verdict) if v.status == "pruned" and v.node in tokens)
    assert tokens[pruned.node] == 1
    assert "not among the draft model's 1 most likely tokens: q 0" in pruned.reason
    lane.close()


@pytest.mark.parametrize("branches", [[[1]], [[1, 0], [1, 2]]])
def test_a_token_comes_out_as_often_as_the_target_wants_it(branches):
    """The reference draws once a path and again after a rejection, so that p = .5 becomes .75 or .875."""
    even = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    tree = Tree([0])
    draft = Draft(0)
    for branch in branches:
        node = 0
        for token in branch:
            below = {tree.tokens[child]: child for child in draft.children.get(node, [])}
            if token not in below:
                below[token] = tree.add(node, token)
                draft.nodes.append(below[token])
                draft.children.setdefault(node, []).append(below[token])
            node = below[token]
    p = dict.fromkeys([0, *draft.nodes], even)

    def run(chooser) -> int:
        return losslessness.first_token(
            (NODE_SAMPLING.verify(VerifierInput(draft, tree.tokens, p, chooser, 0)), tree)
        )

    assert Exhaustive().distribution(run)[1] == pytest.approx(0.5, abs=1e-12)


def test_files_and_folders_of_ones_own_are_stores(monkeypatch, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "cats.txt").write_text("a cat sat\n<|endoftext|>\na cat ran", "utf-8")
    (tmp_path / "dogs.txt").write_text("a dog", "utf-8")
    shipped = datastore.names()
    monkeypatch.setenv("EXPLORER_STORES", f"{tmp_path / 'notes'}{os.pathsep}{tmp_path / 'dogs.txt'}")
    assert datastore.names() == (*shipped, "cats", "dogs")
    assert datastore.texts("cats") == ["a cat sat", "a cat ran"] and datastore.texts("dogs") == ["a dog"]
    for store, said in (("cats", "cat"), ("dogs", "dog")):
        mine = sorted_store(datastore.encoded(store, Letters()))
        found, runs = retrieve(mine, [ord("a"), ord(" ")], 2, 2, 3)
        assert found == 2 and {"".join(map(chr, run)) for run in runs} == {said}


def test_a_store_that_is_not_there_is_named_in_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "stories.txt").write_text("mine", "utf-8")
    for place, said in (
        (tmp_path / "none.txt", "none.txt, which is neither a text file nor a folder"),
        (tmp_path / "stories.txt", "there is a store called stories already; rename stories.txt"),
    ):
        monkeypatch.setenv("EXPLORER_STORES", str(place))
        with pytest.raises(ValueError, match=said):
            datastore.names()


class Letters:
    """A model whose tokens are letters."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]
