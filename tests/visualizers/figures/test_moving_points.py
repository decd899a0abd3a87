"""Moving points: the slider shows one step at a time."""

import numpy as np

from visualizers.figures.moving_points import moving_points


def test_each_stop_of_the_slider_shows_its_own_points_and_what_stays():
    frames = [np.zeros((3, 2)), np.ones((3, 2)), np.full((3, 2), 2.0)]
    behind = np.array([[0.0, 0.0], [1.0, 1.0]])
    figure = moving_points("Three steps", frames, ["a", "b", "c"], edges=[(0, 1)], behind=behind)
    steps = figure.layout.sliders[0].steps
    assert [step.label for step in steps] == ["a", "b", "c"] and figure.layout.sliders[0].active == 2
    for at, step in enumerate(steps):
        seen = [trace for trace, on in zip(figure.data, step.args[1], strict=True) if on]
        assert list(seen[0].x) == [0, 1], "the data stay"
        assert list(seen[-1].x) == [at] * 3 and len(seen) == 3
    assert [trace.visible for trace in figure.data] == list(steps[-1].args[1])


def test_shades_are_greys_from_pale_to_dark():
    figure = moving_points("Shades", [np.zeros((2, 2))], ["a"], shades=[np.array([0.0, 1.0])])
    pale, dark = figure.data[0].marker.color
    assert sum(bytes.fromhex(pale[1:])) > sum(bytes.fromhex(dark[1:]))
