"""A constraint in a lane: the exact law of masking on table models, its record, its ends and dead ends."""

import math
import re
from itertools import product

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.constraints.constraint import FORBIDDEN, FREE, States, masked
from decoders.constraints.trie import Trie
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.endings import WHOLE
from decoders.trace.events import Commit, Distribution, Forward, Verdict
from visualizers.analysis.cost_summary import TABLE, table_row

EOS, LETTERS = 0, {1: "b", 2: "c", 3: "d"}
PATTERN = "(b|cd)*b|c{1,2}"  # after c a text may end, go on with d, or with c
LIMIT = 4


def table(seed: int) -> TableModel:
    return TableModel(random_table(seed, 4, 1.5), 4, frozenset({EOS}))


def run(strategy, model, chooser=None, new_tokens=LIMIT, prompt=(1,), **parameters):
    asked = {"constraint": "regex", "constraint_text": PATTERN} | parameters
    models = {"target": model, "draft": table(99)}
    return Lane(strategy, list(prompt), models, asked, 0, Limits(new_tokens), chooser).run()


def asked(pattern: str) -> dict:
    return {"constraint": "regex", "constraint_text": pattern}


def viable(tokens: tuple[int, ...]) -> bool:
    """Whether some allowed text begins like this, by listing all of them up to a length."""
    text = "".join(LETTERS[t] for t in tokens)
    return any(
        re.fullmatch(PATTERN, text + "".join(more))
        for length in range(4)
        for more in product("bcd", repeat=length)
    )


def local_law(model, prompt=(1,)) -> dict[tuple[int, ...], float]:
    """Text -> the product over its tokens of P(token) / Z, Z being the mass of the allowed tokens."""
    law: dict[tuple[int, ...], float] = {}

    def grow(text: tuple[int, ...], probability: float) -> None:
        if text and (text[-1] == EOS or len(text) == LIMIT):
            law[text] = law.get(text, 0.0) + probability
            return
        row = model.table((*prompt, *text))
        allowed = [t for t in LETTERS if viable((*text, t))]
        if re.fullmatch(PATTERN, "".join(LETTERS[t] for t in text)):
            allowed.append(EOS)
        mass = sum(row[t] for t in allowed)
        for token in allowed:
            grow((*text, token), probability * row[token] / mass)

    grow((), 1.0)
    return law


@pytest.mark.parametrize("seed", range(3))
def test_masked_sampling_has_exactly_the_local_law(seed):
    model = table(seed)
    found = Exhaustive().distribution(lambda chooser: tuple(run("sample", model, chooser).output()))
    want = local_law(model)
    assert found.keys() == want.keys()
    assert all(math.isclose(found[text], want[text], abs_tol=1e-12) for text in want)


@pytest.mark.parametrize("strategy", ["speculative", "speculative_tree", "specinfer"])
def test_lossless_methods_have_the_law_of_masked_sampling(strategy):
    model, asked = table(4), {"temperature": 1.0}
    if strategy == "speculative":
        asked["num_assistant_tokens"] = 2
    found = Exhaustive().distribution(
        lambda chooser: tuple(run(strategy, model, chooser, new_tokens=3, **asked).output())
    )
    want = Exhaustive().distribution(lambda chooser: tuple(run("sample", model, chooser, 3).output()))
    assert found.keys() == want.keys()
    assert all(math.isclose(found[text], want[text], abs_tol=1e-9) for text in want)


def test_what_is_recorded_is_what_the_mask_removed():
    model = table(7)
    found = run("greedy", model)
    removed = {e.node: e for s in found.steps for e in s.of(Distribution) if e.view == "forbidden"}
    text, nodes = [], found.nodes()
    path = [0, *(n for s in found.steps for c in s.of(Commit) for n in c.nodes)]
    for node in path[:-1]:
        if node:
            text.append(nodes[node][1])
        row, event = model.table((1, *text)), removed[node]
        allowed = [t for t in LETTERS if viable((*text, t))]
        if re.fullmatch(PATTERN, "".join(LETTERS[t] for t in text)):
            allowed.append(EOS)
        assert event.among == 4 - len(allowed)
        assert math.exp(event.kept) == pytest.approx(sum(row[t] for t in allowed))
        gone = sum(math.exp(p) for _, p in event.top) + event.rest
        assert gone == pytest.approx(1 - sum(row[t] for t in allowed), abs=1e-9)
        assert {t for t, _ in event.top} == set(range(4)) - set(allowed)
    assert len(text) > 1


def test_a_text_that_is_whole_ends_a_lane_of_a_model_without_an_end_of_text():
    model = TableModel(random_table(1, 4, 1.0), 4)
    found = run("greedy", model, constraint_text="bcd")
    assert (
        found.text() == "bcd"
        and found.ended == "The text is one that the constraint allows, and nothing may follow it."
    )


def test_a_constraint_that_the_vocabulary_cannot_spell_is_a_dead_end_with_a_sentence():
    found = run("greedy", table(2), constraint_text="bx")
    assert found.text() == "b" and "leaves no token" in found.ended
    found = run("beam", table(2), constraint_text="bx", num_beams=2)
    assert "leaves no token" in found.ended or found.text() == "b"


def test_states_along_a_tree_begin_behind_the_prompt_and_stay_forbidden():
    tree = Tree([3, 1])
    states = States(Trie([[1, 2], [1, 3, 3]], 4), tree, 2, frozenset({EOS}))
    good, bad = tree.add(1, 1), tree.add(1, 2)
    assert states.at(0) is FREE and states.at(bad) is FORBIDDEN
    assert states.mask(0) is None and states.mask(bad) is None and states.at(tree.add(bad, 1)) is FORBIDDEN
    assert states.mask(1).tolist() == [False, True, False, False]
    assert states.mask(good).tolist() == [False, False, True, True]
    end = tree.add(good, 2)
    assert states.mask(end).tolist() == [True, False, False, False]
    assert states.at(tree.add(end, EOS)) is FREE and states.at(tree.add(good, EOS)) is FORBIDDEN
    assert states.forced(1) == [1] and states.forced(good) == []
    other = tree.add(-1, 3)  # of another text beside the prompt
    assert states.at(other) is FREE


def test_texts_that_meet_and_a_constraint_do_not_fit_together():
    with pytest.raises(ValueError, match="set merge to never"):
        run("lattice", table(1))
    assert run("lattice", table(1), merge="never").output()


def test_rows_that_are_wider_or_narrower_than_the_constraint():
    mask = torch.tensor([True, False, True])
    wide = masked(torch.zeros(2, 5), [mask, None])
    assert wide[0].tolist() == [0, -math.inf, 0, -math.inf, -math.inf] and not wide[1].any()
    assert masked(torch.zeros(1, 2), [mask])[0].tolist() == [0, -math.inf]


def test_fixed_drafts_that_the_constraint_forbids_never_reach_the_target():
    """Prompt lookup copies b c b c; after c the constraint forbids b."""
    model = TableModel(random_table(11, 4, 1.0), 4, frozenset({EOS}))
    prompt, asked = (1, 2, 1, 2, 1, 2, 1), {"constraint_text": "cdb*|cc"}
    found = run("prompt_lookup", model, prompt=prompt, **asked)
    greedy = run("greedy", model, prompt=prompt, **asked)
    assert found.output() == greedy.output()
    pruned = [v for s in found.steps for v in s.of(Verdict) if v.status == "pruned"]
    assert pruned and {v.reason for v in pruned} == {"The constraint forbids it."}
    verified = [f.tokens for s in found.steps for f in s.of(Forward)]
    assert verified[0] == 2 or verified[1] == 2, "the root and c alone"


@pytest.mark.parametrize("strategy", ["greedy", "sample"])
def test_forced_tokens_take_no_forward_of_their_own_and_change_no_text(strategy):
    model, asked = TableModel(random_table(12, 4, 1.0), 4), {"constraint_text": "bc(b|d)cdcd"}
    plain = run(strategy, model, new_tokens=7, **asked)
    fast = run(strategy, model, new_tokens=7, constraint_fast_forward=True, **asked)
    assert fast.output() == plain.output() and fast.ended == plain.ended
    assert plain.costs.totals()["target_forwards"] == 7
    assert fast.costs.totals()["target_forwards"] == 2
    assert fast.costs.totals()["logprob"] == pytest.approx(plain.costs.totals()["logprob"])
    assert [sum(c.logprobs) for s in fast.steps for c in s.of(Commit)]


def test_what_was_kept_along_the_text_is_a_cost_of_the_lane():
    """Its product is the text's importance weight: probability under the model = local probability x kept."""
    model = table(7)
    for strategy in ("greedy", "speculative"):
        found = run(strategy, model)
        want, text = 0.0, []
        local = 1.0
        for token in found.output():
            row = model.table((1, *text))
            allowed = [t for t in LETTERS if viable((*text, t))]
            if re.fullmatch(PATTERN, "".join(LETTERS[t] for t in text)):
                allowed.append(EOS)
            mass = sum(row[t] for t in allowed)
            want, local, text = want + math.log(mass), local * row[token] / mass, [*text, token]
        assert found.costs.log_kept == pytest.approx(want)
        assert math.exp(found.costs.logprob) == pytest.approx(local * math.exp(found.costs.log_kept))
    assert run("greedy", model, constraint="none").costs.log_kept is None


def test_the_comparison_says_whether_a_text_is_valid():
    """It ended by itself, or was cut off by the limit; a dash where nothing is asked of it."""

    def valid(trace):
        return dict(zip(TABLE, table_row(trace.costs, ended=trace.ended), strict=True))["valid"]

    model = table(7)
    ends = TableModel(lambda past: [0.1, 0.7, 0.1, 0.1] if len(past) == 1 else [0.9, 0.1, 0, 0], 4, model.eos)
    whole = run("greedy", ends)
    assert whole.ended in WHOLE and valid(whole) == {"value": 1, "label": "yes"}
    cut = run("greedy", model, new_tokens=1)
    assert cut.ended not in WHOLE and valid(cut) == {"value": 0, "label": "no"}
    assert valid(run("greedy", model, constraint="none"))["label"] == "—"
    assert dict(zip(TABLE, table_row(whole.costs), strict=True))["valid"]["value"] is None  # it is not over


def test_a_lane_may_begin_with_tokens_that_the_constraint_allows_and_with_no_others():
    model = table(3)
    begin = {"tokens": [2], "forced": [0]}
    lane = Lane("greedy", [1], {"target": model}, asked("cdb"), 0, Limits(3), begin=begin)
    assert lane.run().text() == "cdb"
    with pytest.raises(ValueError, match="forbids the tokens with which this lane begins"):
        Lane("greedy", [1], {"target": model}, asked("bcd"), 0, Limits(3), begin=begin)
