"""What positions of a canvas waited for: chains on tables whose dependencies are known."""

from decoders.lane import Lane, Limits
from decoders.models.tabular_denoiser import TabularDenoiser
from decoders.registry import get
from decoders.trace.events import FINAL_STATES, Depend
from visualizers.graphs import critical_path
from visualizers.registry import deltas
from visualizers.scene.view import Header
from visualizers.views.diffusion.cell_states import FILLED


def run(joint, length, **parameters):
    target = TabularDenoiser(joint, 2)
    given = {"policy": "threshold", "tau": 0.9, "dependencies": True} | parameters
    return Lane("masked_diffusion", [0], {"target": target}, given, 0, Limits(length)).run()


def links(found):
    return [(e.source, e.target) for s in found.steps for e in s.of(Depend)]


def test_an_equal_pair_waits_for_its_first_half():
    """Both are a coin; whichever is filled first decides the other, and the third never waits."""
    found = run({(0, 0, 1): 0.6, (1, 1, 1): 0.4}, 3)
    assert found.output() == [0, 0, 1]
    assert links(found) == [(1, 2)] or links(found) == [(2, 1)]
    assert found.costs.target_forwards == 3 and found.costs.lens_forwards == 2


def test_what_is_certain_from_the_start_waits_for_nothing():
    found = run({(0, 1, 1): 1.0}, 3)
    assert links(found) == [] and found.costs.target_forwards == 1


def test_the_grid_says_how_long_the_longest_chain_is():
    found = run({(0, 0, 1): 0.6, (1, 1, 1): 0.4}, 3)
    _, steps = deltas("canvas_grid", Header.of(found), found.steps)
    says = [op["say"] for delta in steps for op in delta["ops"] if "say" in op]
    assert says[-1] == "3 forwards, of which the longest chain of waits needs 2."
    hooks = [op for delta in steps for op in delta["ops"] if op.get("kind") == "hook"]
    assert len(hooks) == 1


def test_a_canvas_is_a_graph_whose_longest_chain_could_not_be_saved():
    """The third is certain at once; of the pair, one waits for the other."""
    found = run({(0, 0, 1): 0.6, (1, 1, 1): 0.4}, 3)
    graph = found.graph("dependencies")
    assert set(graph.nodes) == {1, 2, 3}
    assert critical_path(graph).used == 3 and critical_path(graph).unavoidable == 2
    _, steps = deltas("graph", Header.of(found), found.steps)
    says = [op["say"] for delta in steps for op in delta["ops"] if "say" in op]
    assert says[-1].startswith("3 final. At least 2 of 3 iterations were unavoidable")


def test_every_state_of_a_filled_position_is_final():
    assert FILLED | {"settled"} == FINAL_STATES | {"changed"}


def test_the_graph_is_a_view_of_canvases_that_look_for_waits():
    for name in ("masked_diffusion", "local_leap"):
        strategy = get(name)
        assert "graph" not in strategy.views_with(strategy.check({}))
        assert strategy.views_with(strategy.check({"dependencies": True})).count("graph") == 1
    jacobi = get("jacobi")
    assert jacobi.views_with(jacobi.check({"dependencies": True})).count("graph") == 1
