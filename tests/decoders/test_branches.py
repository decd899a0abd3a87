"""DuoDecoding and SpecBranch: how many sequences there are, what they share with PEARL, exactness."""

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import Outlook, Target, take_taps
from decoders.heads.scorers.outlook import ALL, NONE, SOME
from decoders.models.table_model import TableModel, TableScorer, exact_distribution
from decoders.speculative.asynchronous.duodecoding import sequence_count
from decoders.speculative.asynchronous.specbranch import branch_count
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Commit, Forward, Note, Propose, Verdict
from decoders.trace.number_format import number
from tests.decoders.speculative.asynchronous.test_pearl import VOCABULARY, run, says, told
from tests.decoders.speculative.test_lossless_exact import PAIRS, SHAPES, pair
from tests.helpers import tiny_models
from tests.helpers.losslessness import law_of_rounds

BRANCHED = {
    "duodecoding": {"budget": 4},
    "specbranch": {"num_assistant_tokens": 2, "max_branches": 4, "epsilon": 0.5},
}
every_one = pytest.mark.parametrize("name", BRANCHED)


def test_how_many_sequences_share_a_budget():
    p = [0.4, 0.3, 0.15, 0.1, 0.05]
    assert sequence_count(p, 0.5, 24) == 2 and sequence_count(p, 0.2, 24) == 4
    even = [0.1] * 10
    assert [sequence_count(even[:n], 0.0, 24) for n in (1, 5, 7, 10)] == [1, 4, 6, 8]
    assert [sequence_count(even[:n], 0.0, 16) for n in (3, 7, 8)] == [2, 4, 8]
    assert [sequence_count(even[:n], 0.0, 12) for n in (3, 5, 8)] == [3, 4, 6]


def test_how_many_branches_leave_a_place():
    assert [branch_count(6, q) for q in (0.9, 0.5, 0.1)] == [1, 3, 5]


def rounds(trace) -> list[tuple]:
    """Of each round: tokens committed, forwards by model and tokens read, what became of the guesses."""
    return [
        (
            [len(c.nodes) for c in s.of(Commit)],
            [(f.model, f.tokens) for f in s.of(Forward)],
            [v.status for v in s.of(Verdict)],
        )
        for s in trace.steps
    ]


def far() -> dict[str, TableModel]:
    """Nine tokens over and over, and a target that wants another one in the sixth place."""
    words = (1, 2, 3, 4, 5, 6, 7, 8, 9)
    target = TableModel(says(*words, differs=5), VOCABULARY)
    return {"target": target, "draft": TableModel(says(*words), VOCABULARY)}


def test_one_sure_sequence_is_pearl_but_for_the_first_round():
    duo = run(far(), {"budget": 3, "concurrent": False}, 30, strategy="duodecoding")
    pearl = run(far(), {"num_assistant_tokens": 3, "concurrent": False}, 29, [0, *duo.output()[:1]])
    assert duo.output()[1:] == pearl.output() and rounds(duo)[1:-1] == rounds(pearl)[:-1]
    assert sum(p.source == "draft" for p in duo.steps[0].of(Propose)) == 1


def test_one_branch_without_doubt_is_pearl():
    one = {"num_assistant_tokens": 3, "max_branches": 1, "epsilon": 0.0, "concurrent": False}
    branched = run(far(), one, 30, strategy="specbranch")
    pearl = run(far(), {"num_assistant_tokens": 3, "concurrent": False}, 30)
    assert branched.output() == pearl.output() and rounds(branched) == rounds(pearl)


def test_a_window_is_cut_before_the_token_in_doubt_and_another_branch_survives():
    """The draft gives .9 to each token but the fifth, where its second choice is the target's."""

    def hesitates(text):
        row = says(1, 2, 3, 4, 5, 6, 7, 8, 9)(text)
        if len(text) == 5:
            row = [0.3 if t == 5 else 0.28 if t == 6 else 0.42 / 10 for t in range(VOCABULARY)]
        return row

    target = TableModel(says(1, 2, 3, 4, 6, 6, 7, 8, 9), VOCABULARY)
    models = {"target": target, "draft": TableModel(hesitates, VOCABULARY)}
    found = run(models, {"num_assistant_tokens": 3, "concurrent": False}, 20, strategy="specbranch")
    tokens = {n: t for n, (_, t) in found.nodes().items()}
    note = Note(
        "A token of the window is in doubt; the draft's best token there has probability .3: 4 branches."
    )
    cut = next(s for s in found.steps if note in s.events)
    tested = [(tokens[v.node], v.status) for v in cut.of(Verdict) if v.status != "never reached"]
    assert tested == [(5, "rejected"), (6, "accepted")]


@every_one
@pytest.mark.parametrize("models", PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
def test_they_have_the_targets_law(name, models, shape):
    found, length = pair(models), 3
    parameters = {"concurrent": False, **BRANCHED[name], **SHAPES[shape]}
    law = law_of_rounds(Exhaustive(), name, found, parameters, length)
    assert distance(law, exact_distribution(found["target"], (0,), length, shape_of(parameters))) < 1e-12


@every_one
def test_they_have_the_targets_law_over_several_rounds_with_ends(name):
    found = pair("close", frozenset({2}))
    parameters = {"concurrent": False, **BRANCHED[name], "temperature": 1.0}
    law = law_of_rounds(Exhaustive(), name, found, parameters, 5)
    assert distance(law, exact_distribution(found["target"], (0,), 5, shape_of(parameters))) < 1e-12


@pytest.fixture(scope="module")
def models():
    return {"target": tiny_models.make("llama"), "draft": tiny_models.make("llama", 1)}


@every_one
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_in_turn_and_at_the_same_time_tell_the_same(models, name, temperature):
    parameters = {**BRANCHED[name], "temperature": temperature}
    both = [
        run(models, {**parameters, "concurrent": concurrent}, 40, [40, 41, 42], seed=3, strategy=name)
        for concurrent in (False, True)
    ]
    assert told(both[0]) == told(both[1])
    if temperature == 0.0:
        assert both[0].output() == run(models, None, 40, [40, 41, 42], strategy="greedy").output()


def test_branches_are_rolled_back_less_often_than_pearl():
    def rate(name: str) -> float:
        """Share of rounds in which the target wrote a token of its own, over ten pairs of laws far apart."""
        own = every = 0
        for seed in range(10):
            target, draft = random_table(seed, 6, 2.0), random_table(50 + seed, 6, 1.0)
            pair = {
                "target": TableModel(lambda t, f=target: f(t[-2:]), 6),
                "draft": TableModel(
                    lambda t, f=draft, g=target: [
                        (a + b) / 2 for a, b in zip(f(t[-2:]), g(t[-2:]), strict=True)
                    ],
                    6,
                ),
            }
            for step in run(pair, {"concurrent": False}, 30, strategy=name).steps:
                every += 1
                own += any(v.status == "resampled" for v in step.of(Verdict))
        return own / every

    assert rate("specbranch") < rate("pearl")


@every_one
@pytest.mark.parametrize("count", [1, 2, 7, 13])
def test_never_more_tokens_than_asked_for(models, name, count):
    assert len(run(models, BRANCHED[name], count, [40, 41], strategy=name).output()) <= count


class Foresees:
    """A predictor that always expects the same fate."""

    settings = {"of": "table"}

    def __init__(self, fate: int):
        self.fate = fate

    def scores(self, streams, chosen: int) -> torch.Tensor:
        return torch.eye(3)[self.fate]


class Tapped(TableModel):
    """A table with a predictor; it has no layers to be read."""

    outlook: Foresees | None = None

    def attach(self, tree) -> TableScorer:
        scorer = super().attach(tree)
        scorer.streams = lambda node: None
        return scorer


def foreseeing(models: dict[str, TableModel], fate: int) -> dict[str, TableModel]:
    target = Tapped(models["target"].table, models["target"].vocabulary, models["target"].eos)
    target.heads["outlook"] = Foresees(fate)
    return {"target": target, "draft": models["draft"]}


def test_one_branch_and_a_window_that_is_always_expected_to_pass_is_pearl():
    one = {"num_assistant_tokens": 3, "max_branches": 1, "epsilon": 0.99, "concurrent": False}
    branched = run(foreseeing(far(), ALL), one, 30, strategy="specbranch")
    pearl = run(far(), {"num_assistant_tokens": 3, "concurrent": False}, 30)
    assert branched.output() == pearl.output() and rounds(branched) == rounds(pearl)


def test_a_window_that_is_expected_to_fail_is_left_to_branches_whole():
    """Each round then tests first tokens only: the target reads one token."""
    parameters = {"num_assistant_tokens": 3, "epsilon": 0.0, "concurrent": False}
    trace = run(foreseeing(far(), NONE), parameters, 20, strategy="specbranch")
    assert trace.output() == run(far(), None, 20, strategy="greedy").output()
    assert {
        tokens for _, forwards, _ in rounds(trace) for model, tokens in forwards if model == "target"
    } == {1}
    told = [e.text for step in trace.steps[1:-1] for e in step.of(Note)]
    assert "The predictor expects none of the window to pass, with probability 1." in told


@pytest.mark.parametrize("fate", [NONE, SOME, ALL])
def test_whatever_the_predictor_expects_the_law_is_the_target_s(fate):
    found = foreseeing(pair("close", frozenset({2})), fate)
    parameters = {"concurrent": False, **BRANCHED["specbranch"], "temperature": 1.0}
    law = law_of_rounds(Exhaustive(), "specbranch", found, parameters, 4)
    assert distance(law, exact_distribution(found["target"], (0,), 4, shape_of(parameters))) < 1e-12


def test_the_predictor_reads_what_the_target_left_where_it_chose_the_newest_token():
    """On a real model: what is noted is what the head says of a forward over the whole text."""
    target, twin = tiny_models.make("llama"), tiny_models.make("llama")
    torch.manual_seed(0)
    head = target.heads["outlook"] = Outlook(Target.of(target.model), of=twin.name).eval()
    both = {"target": target, "draft": twin}
    trace = run(both, {"concurrent": False}, 24, [40, 41, 42], strategy="specbranch")
    text, seen = [40, 41, 42], 0
    for step in trace.steps:
        for note in (e.text for e in step.of(Note) if e.text.startswith("The predictor expects")):
            taps = take_taps(target.model, torch.tensor([text]), head.reads)
            wanted = head(head.inputs(taps))[0, -1].softmax(-1).max()
            assert note.endswith(f"with probability {number(float(wanted))}.")
            seen += 1
        nodes = trace.nodes()
        text += [nodes[n][1] for commit in step.of(Commit) for n in commit.nodes]
    assert seen
