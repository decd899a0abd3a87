"""Labels: each once, prefixes of one another beside each other, and a list of its own for every beam."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.constraints.automaton import OfBytes
from decoders.constraints.kinds import constraint_of
from decoders.constraints.labels import Labels, labels_of, parsed
from decoders.constraints.matchers import Vocabulary
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.events import Distribution, Verdict
from decoders.trace.scores import Rank
from decoders.trace.trace import malformed
from tests.helpers import tiny_models

WORDS = ["<end>", "red", " car", "blue", ", "]
END, RED, CAR, BLUE, SEP = range(5)
TYPED = {"constraint": "labels", "constraint_text": "red|red car|blue"}
VOCABULARY = Vocabulary([word.encode() for word in WORDS], [END], [END], None)


def following(*tokens: int, most: int = 0) -> set[int] | None:
    """What may follow these tokens, the end of the text included."""
    constraint = OfBytes(Labels(["red", "red car", "blue"], ", ", most), VOCABULARY)
    state = constraint.start()
    for token in tokens:
        if (state := constraint.advance(state, token)) is None:
            return None
    allowed = set(constraint.allowed(state).nonzero()[:, 0].tolist())
    return allowed | ({END} if constraint.may_end(state) else set())


def test_a_used_label_leaves_longer_ones_in_place():
    assert following() == {RED, BLUE}
    assert following(RED) == {CAR, SEP, END}
    assert following(RED, SEP) == {RED, BLUE}  # red only as the start of red car
    assert following(RED, SEP, RED) == {CAR}
    assert following(RED, SEP, RED, CAR) == {SEP, END}
    assert following(RED, CAR, SEP, RED) == {SEP, END}
    assert following(BLUE, SEP, BLUE) is None and following(RED, SEP, RED, SEP) is None


def test_when_all_are_used_only_the_end_is_left():
    assert following(RED, SEP, RED, CAR, SEP, BLUE) == {END}
    assert following(RED, most=1) == {CAR, END} and following(RED, CAR, most=1) == {END}
    assert following(RED, SEP, BLUE, most=2) == {END}


def model(seed: int, sharpness: float = 1.0) -> TableModel:
    return TableModel(random_table(seed, 5, sharpness), 5, frozenset({END}), words=WORDS)


def run(strategy, target, seed=0, chooser=None, new_tokens=10, **parameters):
    lane = Lane(strategy, [END], {"target": target}, parameters, seed, Limits(new_tokens), chooser)
    return lane.run()


def whole(trace) -> list[str]:
    return parsed(trace.text().removesuffix("<end>"))


@pytest.mark.parametrize("strategy", ["greedy", "sample", "beam", "stochastic_beam", "awrs"])
def test_outputs_are_subsets_of_the_list(strategy):
    for seed in range(12):
        trace = run(strategy, model(seed), seed, **TYPED)
        found = whole(trace)
        assert set(found) <= {"red", "red car", "blue"} and len(found) == len(set(found))
        assert trace.output()[-1] == END


def test_every_text_of_the_language_is_reached_and_nothing_else():
    seen = Exhaustive().distribution(lambda c: tuple(whole(run("sample", model(3), chooser=c, **TYPED))))
    orders = {tuple(t) for t in seen if t}
    assert len(orders) == 3 + 6 + 6 and sum(seen.values()) == pytest.approx(1.0)


def test_beams_keep_a_list_each():
    for seed in range(8):
        trace = run("beam", model(seed), num_beams=4, num_return_sequences=4, **TYPED)
        nodes = trace.nodes()
        for event in (e for s in trace.steps for e in s.of(Verdict) if e.status == "finished"):
            node, tokens = event.node, []
            while node in nodes and node >= 1:
                node, token = nodes[node]
                tokens.append(token)
            found = parsed("".join(WORDS[t] for t in reversed(tokens) if t != END))
            assert len(found) == len(set(found)) and set(found) <= {"red", "red car", "blue"}


# root: x .6, y .4; after x the label goes on with a rare token, after y with a likely one
BIASED = TableModel(
    lambda past: {
        (): [0, 0.6, 0.4, 0, 0],
        (1,): [0, 0, 0.95, 0.05, 0],
        (2,): [0.1, 0, 0, 0, 0.9],
    }.get(past[1:], [1, 0, 0, 0, 0]),
    5,
    frozenset({0}),
    words=["<end>", "x", "y", "z", "w"],
)


def test_label_bias_step_by_step_against_whole_labels():
    given = {"labels": "xz|yw"}
    local = run("trie_search", BIASED, answer="one label", **given)
    exact = run("trie_search", BIASED, answer="one label, exact", **given)
    assert local.text() == "xz<end>" and exact.text() == "yw<end>"
    scores = {e.total for s in exact.steps for e in s.of(Rank) if e.name == "label"}
    assert sorted(scores) == pytest.approx(torch.tensor([0.03, 0.36]).log().tolist(), abs=1e-6)
    assert exact.costs.totals()["target_forwards"] == 1
    beams = run("beam", BIASED, num_beams=2, constraint="labels", constraint_text="xz|yw")
    assert beams.text().startswith("yw")


def test_traces_of_both_ways_are_well_formed_and_impossible_labels_are_said():
    for answer in ("several labels", "one label", "one label, exact"):
        trace = run("trie_search", model(2), labels="red|red car|blue", answer=answer)
        assert malformed((e for s in trace.steps for e in s.events), 1) is None
    trace = run("trie_search", BIASED, labels="zz|zw", answer="one label, exact")
    assert trace.ended == "The model gives every label probability 0; choose other labels."


def test_exact_scoring_is_the_argmax_over_labels():
    """On a real model: the sum of log-probabilities of each label and its end, computed by itself."""
    target, labels = tiny_models.make(), ["cat", "car", "dog on a mat", "d"]
    prompt = target.encode("the animal: ")
    found = Lane(
        "trie_search", prompt, {"target": target}, {"labels": "|".join(labels), "answer": "one label, exact"}
    )
    text = found.run().text().removesuffix(tiny_models.END)
    end = next(iter(target.eos))

    def total(label):
        ids = [*prompt, *target.encode(label), end]
        rows = target.model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(rows[i - 1, ids[i]]) for i in range(len(prompt), len(ids)))

    assert text == max(labels, key=total)
    ranked = [e for s in found.trace.steps for e in s.of(Rank) if e.name == "label"]
    assert [e.total for e in ranked] == pytest.approx(sorted(map(total, labels), reverse=True), abs=1e-3)


def test_the_preset_writes_several_labels_and_says_what_was_forbidden():
    trace = run("trie_search", model(4), labels="red|red car|blue")
    assert trace.output() == run("greedy", model(4), **TYPED).output()
    assert any(e.view == "forbidden" for s in trace.steps for e in s.of(Distribution))
    other = run(
        "trie_search",
        TableModel(random_table(4, 4), 4, words=["a", "b", ";", "c"]),
        labels="a|b|c",
        separator=";",
    )
    assert sorted(other.text().split(";")) == ["a", "b", "c"]  # no end of text: all of them


def test_a_space_may_stand_before_the_first_label_alone():
    vocabulary = Vocabulary([b" ", b"a", b", ", b" a", b"b"], [], [], None)
    constraint = OfBytes(Labels(["a", "b"]), vocabulary)
    state = constraint.advance(constraint.start(), 0)
    assert constraint.allowed(constraint.start()).tolist() == [True, True, False, True, True]
    assert constraint.allowed(state).tolist() == [False, True, False, False, True]
    assert parsed(" a, b") == ["a", "b"]


def test_a_forced_run_is_named():
    constraint = OfBytes(Labels(["red car"]), VOCABULARY)
    assert constraint.forced(constraint.start()) == [RED, CAR]


@pytest.mark.parametrize(
    "given,said",
    [
        ({"labels": "a, b|c"}, "The label 'a, b' contains the separator ', '; change one."),
        ({"labels": "a|b", "separator": ""}, "The separator is empty"),
        ({"labels": "x|xa", "separator": "aa"}, "the labels 'x' and 'xa' cannot be told apart"),
        ({"labels": "||"}, "The list of labels is empty; type one label per line."),
    ],
)
def test_lists_that_cannot_be_used(given, said):
    with pytest.raises(ValueError, match=said):
        Lane("trie_search", [0], {"target": BIASED}, given)


def test_the_kind_is_refused_with_a_sentence_too():
    with pytest.raises(ValueError, match="contains the separator"):
        constraint_of({"constraint": "labels", "constraint_text": "a, b|c"}, BIASED, BIASED.eos)
    assert labels_of("one\n two \n\none") == ["one", "two"]
