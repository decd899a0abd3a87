"""SpecInfer with several draft models: exact law, merged trees, and which model made a draw."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.catalog import by_role
from decoders.models.table_model import TableModel, exact_distribution
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Propose, Verdict
from tests.helpers.losslessness import law_of_rounds

SEEDS = {"target": 3, "draft": 4, "draft 2": 5}


def three(vocabulary: int = 3, zeros: float = 0.0) -> dict[str, TableModel]:
    """A target and two draft models that disagree with it and with each other."""
    tables = {role: random_table(seed, vocabulary, 2.0, zeros) for role, seed in SEEDS.items()}
    return {role: TableModel(table, vocabulary) for role, table in tables.items()}


PLAIN, CUT = {"temperature": 1.0}, {"temperature": 1.4, "top_k": 2}


@pytest.mark.parametrize(
    ("expansion", "vocabulary", "shape"),
    [
        ([1], 5, PLAIN),
        ([1], 5, CUT),
        ([2], 2, PLAIN),  # of three tokens there are ten times as many outcomes
        ([2], 3, CUT),
        ([1, 1], 3, PLAIN),
        ([1, 1], 3, CUT),
    ],
)
def test_two_draft_models_keep_the_target_s_law(expansion, vocabulary, shape):
    models, parameters = three(vocabulary), {"expansion": expansion, **shape}
    law = law_of_rounds(Exhaustive(), "specinfer", models, parameters, 3, rounds=1)
    assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_two_draft_models_keep_it_over_all_rounds(zeros):
    models, parameters = three(2, zeros=zeros), {"expansion": [1], "temperature": 1.2}
    law = law_of_rounds(Exhaustive(), "specinfer", models, parameters, 3)
    assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


def test_a_test_with_another_model_s_q_would_bend_it(monkeypatch):
    """The proof above can fail: with the first model's q for all draws the law is another one."""
    from decoders.speculative.interfaces import VerifierInput

    def first(inputs: VerifierInput, node: int) -> list:
        return [inputs.draft.q.get(node)] * len(inputs.offers(node))

    monkeypatch.setattr(VerifierInput, "drawn_from", first)
    models, parameters = three(5), {"expansion": [1], "temperature": 1.0}
    law = law_of_rounds(Exhaustive(), "specinfer", models, parameters, 2, rounds=1)
    assert distance(law, exact_distribution(models["target"], (0,), 2, shape_of(parameters))) > 1e-3


def lane_of(models: dict, **parameters) -> Lane:
    return Lane("specinfer", [0], models, {"expansion": [2, 1], **parameters}, limits=Limits(6))


def test_temperature_0_is_greedy_and_equal_guesses_share_a_node():
    models = three()
    trace = lane_of(models, temperature=0.0).run()
    assert {tuple(trace.output()): 1.0} == exact_distribution(
        models["target"], (0,), 6, shape_of({"temperature": 0.0})
    )
    for step in trace.steps:
        drafted = [(e.parent, e.token) for e in step.of(Propose) if e.source.startswith("draft")]
        assert len(drafted) == len(set(drafted))
    sources = {e.source for step in trace.steps for e in step.of(Propose)}
    assert {"draft", "draft 2"} <= sources


def test_each_model_reads_and_drafts_and_its_forwards_count():
    trace = lane_of(three(), temperature=1.0).run()
    assert trace.models.keys() == {"target", "draft", "draft 2"}
    ran = [e.model for step in trace.steps for e in step.of(Forward)]
    assert ran.count("draft") and ran.count("draft 2")
    assert trace.costs.draft_forwards == ran.count("draft") + ran.count("draft 2")
    verdicts = [e for step in trace.steps for e in step.of(Verdict)]
    assert trace.costs.accepted == sum(e.status == "accepted" for e in verdicts)


def test_other_strategies_take_the_first_draft_model_alone():
    assert Lane("speculative", [0], three()).models.keys() == {"target", "draft"}


def test_the_same_law_is_drawn_in_the_order_of_the_draws_and_several_by_chance():
    tags = []

    class Listening(Exhaustive):
        def categorical(self, weights, tag):
            tags.append(tag[0])
            return super().categorical(weights, tag)

    models = three()
    Lane("specinfer", [0], models, {"expansion": [2], "temperature": 1.0}, chooser=Listening()).advance()
    assert "order" in tags
    tags.clear()
    del models["draft 2"]
    Lane("specinfer", [0], models, {"expansion": [2], "temperature": 1.0}, chooser=Listening()).advance()
    assert "order" not in tags


def test_names_with_commas_are_several_draft_models():
    assert by_role("t", "a, b") == {"target": "t", "draft": "a", "draft 2": "b"}
    assert by_role("t", None) == {"target": "t"}
    with pytest.raises(ValueError, match="at most 4 draft models, not 5"):
        by_role("t", "a,b,c,d,e")
