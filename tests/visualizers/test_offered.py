"""A lane offers the views that are about something in it."""

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from decoders.trace.trace import Trace
from tests.helpers import tiny_models
from visualizers.offered import ORDER, views_of
from visualizers.registry import names


def decoded(strategy: str, **parameters) -> Trace:
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    return Lane(strategy, [40, 41, 42, 40, 41], models, parameters, 0, Limits(12)).run()


def test_what_happened_decides_not_the_name_of_the_strategy():
    chain, tree = decoded("speculative"), decoded("speculative_tree", widths=[3, 2])
    assert {"draft_rounds", "one_round", "ranks", "accepted_lengths"} <= set(views_of(chain))
    assert "graph" not in views_of(chain) and "graph" in views_of(tree)
    assert not {"draft_rounds", "beam_tree", "canvas"} & set(views_of(decoded("greedy")))
    assert "beam_tree" in views_of(decoded("beam", num_beams=2))
    forced = {"constraint": "regex", "constraint_text": "[a-m ]+[.!]"}
    assert {"constraint", "rules", "constraint_automaton"} <= set(views_of(decoded("greedy", **forced)))


def test_the_first_view_comes_first_then_those_of_few_strategies_and_the_text_last():
    views = views_of(decoded("mirostat"), "sampler")
    assert views[0] == "sampler" and views[-1] == "text" and len(set(views)) == len(views)
    common = [view for view in views[1:] if view in ORDER]
    assert common == sorted(common, key=ORDER.index)


def test_a_lane_without_a_step_has_its_text():
    assert views_of(Trace("none", "None", {}, 0, {}, [1], {1: b"a"})) == ["text"]


def test_what_is_offered_exists():
    assert set(ORDER) <= set(names())
    for strategy in strategies().values():
        assert set(strategy.views) <= set(names()) and strategy.views[0] == strategy.view
