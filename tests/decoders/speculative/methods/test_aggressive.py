"""Aggressive decoding on the dossier's worked example, and where it joins its input."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.methods.aggressive import WHOLE, rejoin
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Commit, Depend, Forward
from tests.helpers.losslessness import law_of_rounds

END = 10


def scripted(prompt: list[int], output: list[int]) -> TableModel:
    """A model whose greedy text after `prompt` is `output`."""

    def table(tokens: tuple[int, ...]) -> list[float]:
        at = len(tokens) - len(prompt)
        wanted = output[at] if 0 <= at < len(output) and list(tokens[len(prompt) :]) == output[:at] else 0
        return [0.8 if token == wanted else 0.02 for token in range(11)]

    return TableModel(table, 11, frozenset({END}))


def run(prompt: list[int], output: list[int], tokens: int = 20, **parameters):
    return Lane(
        "aggressive", prompt, {"target": scripted(prompt, output)}, parameters, limits=Limits(tokens)
    ).run()


def committed(trace) -> list[list[int]]:
    nodes = trace.nodes()
    return [[nodes[n][1] for c in step.of(Commit) for n in c.nodes] for step in trace.steps]


def test_the_worked_example_takes_six_passes():
    source, output = [1, 2, 3, 4, 5, 6, 7], [1, 2, 9, 4, 5, 8, 8, 6, 7, END]
    trace = run(source, output)
    assert committed(trace) == [[1, 2, 9], [4], [5, 8], [8], [6], [7, END]]
    assert sum(isinstance(e, Forward) for s in trace.steps for e in s.events) == 6


def test_an_output_that_is_the_input_takes_one_pass():
    source = [1, 2, 3, 4, 5, 6, 7]
    assert committed(run(source, [*source, END])) == [[*source, END]]


def test_an_output_that_shares_nothing_takes_a_pass_a_token():
    trace = run([1, 2, 3], [7, 8, 9, 7, 8, END])
    assert [len(tokens) for tokens in committed(trace)] == [1] * 6


def test_the_shortest_end_with_one_place_says_where_the_output_joins():
    source = [1, 2, 3, 1, 2, 4]
    assert rejoin(source, []) == (0, 0)
    assert rejoin(source, [3]) == (3, 1)
    assert rejoin(source, [9]) is None
    assert rejoin(source, [2]) is None  # two places, and no longer end to tell them apart
    assert rejoin(source, [3, 1, 2]) == (5, 3)
    assert rejoin(source, [9, 2]) is None  # the longer end stands nowhere
    assert rejoin([1, 2, 3, 1, 2, 3, 1], [1, 2, 3]) is None  # even three tokens have two places


def test_the_input_may_begin_behind_a_colon():
    """Tokens are letters from `a` on; 10 would be the end. The table's words here put a colon first."""
    words = [":", *"abcdefghij"]
    model = scripted([5, 0, 1, 2, 3], [1, 2, 3, END])
    model.words = words
    for source, passes in (("behind the last colon", 1), (WHOLE, 2)):
        lane = Lane("aggressive", [5, 0, 1, 2, 3], {"target": model}, {"source": source}, limits=Limits(9))
        trace = lane.run()
        assert trace.output() == [1, 2, 3, END] and len(trace.steps) == passes
    links = [e for s in trace.steps for e in s.of(Depend)]
    assert {(e.source, e.target) for e in links if e.kind == "match"} == {(2, 10)}  # the whole prompt's run


@pytest.mark.parametrize("source", ["behind the last colon", WHOLE])
def test_the_text_is_greedy_s(tiny_model, prompt, source):
    models = {"target": tiny_model("llama")}
    greedy = Lane("greedy", prompt, models, limits=Limits(24)).run()
    trace = Lane("aggressive", prompt, models, {"source": source}, limits=Limits(24)).run()
    assert trace.output() == greedy.output()


@pytest.mark.parametrize("eos", [frozenset(), frozenset({1})])
def test_drawn_text_has_the_target_s_law(eos):
    models = {"target": TableModel(random_table(3, sharpness=2), 3, eos)}
    parameters = {"temperature": 0.8, "top_p": 0.9}
    law = law_of_rounds(Exhaustive(), "aggressive", models, parameters, 4)
    assert distance(law, exact_distribution(models["target"], (0,), 4, shape_of(parameters))) < 1e-12
