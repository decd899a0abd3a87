"""Miniatures: each belongs to a card, and what they show is true."""

import csv

import numpy as np
import pytest

from explorer.catalog import papers
from explorer.miniatures import inverse_flow, magnetic_layout, miniatures, spiral, story_of


def test_every_miniature_is_named_by_its_papers_card_and_by_no_other():
    named = {row["slug"]: row["miniature"] for row in papers.table("far_papers") if row["miniature"]}
    assert named == {slug: one.name for slug, one in miniatures().items()}


@pytest.mark.parametrize("slug", sorted(miniatures()))
def test_a_story_has_a_name_for_each_step_and_finite_places(slug):
    story = story_of(slug)
    assert story.panels and story.says and miniatures()[slug].asks
    for panel in story.panels:
        assert len(panel.names) == len(panel.frames) > 1
        assert all(
            np.isfinite(frame).all() and frame.shape == panel.frames[0].shape for frame in panel.frames
        )
        assert panel.shades is None or all(s.min() >= 0 and s.max() <= 1 for s in panel.shades)


def test_the_exact_velocity_is_that_of_one_gaussian_where_the_mixture_is_one(monkeypatch):
    """For one component the flow is affine: x_1 = m + width x_0, and the velocity has a closed form."""
    mean = np.array([[1.0, -2.0]])
    monkeypatch.setattr(spiral, "centres", lambda: mean)
    x, t = spiral.noise(50), 0.3
    spread = (1 - t) ** 2 + (t * spiral.WIDTH) ** 2
    expected = mean + (t * spiral.WIDTH**2 - (1 - t)) / spread * (x - t * mean)
    assert np.allclose(spiral.velocity(x, t), expected)
    assert np.allclose(spiral.flow(x, 0, 1), mean + spiral.WIDTH * x, atol=1e-3)


def test_the_exact_flow_ends_on_the_data():
    """Its ends have the mixture's likelihood, and pieces of it join."""
    start = spiral.noise(300)
    ends = spiral.flow(start, 0, 1)

    def nearest(points: np.ndarray) -> np.ndarray:
        return np.sqrt(((points[:, None] - spiral.centres()) ** 2).sum(-1).min(1))

    assert np.quantile(nearest(ends), 0.9) < 1.5 * np.quantile(nearest(spiral.data(300)), 0.9)
    halfway = spiral.flow(start, 0, 0.5, 64)
    assert spiral.error(spiral.flow(halfway, 0.5, 1, 128), spiral.flow(start, 0, 1, 128)) < 0.05


def test_token_by_token_draws_a_column_and_then_a_row_of_the_data():
    nothing, columns, points = spiral.token_by_token(4000)
    assert not nothing.any() and not columns[:, 1].any() and (columns[:, 0] == points[:, 0]).all()
    cells = [np.histogramdd(p, 8, [(-2.4, 2.4)] * 2)[0] / 4000 for p in (points, spiral.data(4000))]
    assert np.abs(cells[0] - cells[1]).sum() / 2 < 0.1  # total variation on a coarse grid


def test_a_normalizing_flow_comes_back_exactly_and_its_noise_is_gaussian():
    x = spiral.data(2000, 11)
    z = inverse_flow.to_noise(x)
    assert np.abs(z.mean(0)).max() < 0.1 and np.abs(np.cov(z.T) - np.eye(2)).max() < 0.12
    first = inverse_flow.first(z[:, 0])
    back = np.stack([first, inverse_flow.second(z[:, 1], first)], 1)
    assert np.abs(back - x).max() < 1e-6


def test_learned_steps_keep_the_order_that_the_sentences_report():
    lines = {line.label: dict(map(tuple, line.points)) for line in story_of("decoupled-meanflow").chart.lines}
    assert lines["learned flow map"][1] < lines["learned velocity"][4] < lines["learned velocity"][1]
    small, blocks, _ = story_of("blockwise-flow-matching").chart.lines
    assert all(b[1] < s[1] for s, b in zip(small.points, blocks.points, strict=True))


def test_the_velocity_gets_steeper_as_noise_ends_the_more_the_thinner_the_data():
    chart = story_of("flow-matching-in-the-low-noise-regime").chart
    curves = [dict(map(tuple, line.points)) for line in chart.lines]
    thick, _, thin = curves
    levels = sorted(thin, reverse=True)
    assert all(thin[b] > thin[a] for a, b in zip(levels, levels[1:], strict=False))
    assert thick[levels[-1]] < max(thick.values())


def test_phases_of_the_magnetic_laplacian_grow_by_q_along_each_edge_of_a_tree():
    graph = magnetic_layout.beams()
    laplacian = magnetic_layout.magnetic_laplacian(graph, 0.05)
    assert np.allclose(laplacian, laplacian.conj().T)
    assert np.linalg.eigvalsh(laplacian)[0] == pytest.approx(0, abs=1e-9)  # a tree has no frustrated cycle
    x = magnetic_layout.layout(graph, 0.05)[:, 0]
    at = {node: number for number, node in enumerate(graph)}
    assert np.allclose([x[at[b]] - x[at[a]] for a, b in graph.edges], 0.05)


def test_cards_say_all_and_name_what_exists():
    from decoders.registry import strategies

    slugs = {row["slug"] for row in papers.table("papers")}
    for row in papers.table("far_papers"):
        assert row["slug"] in slugs and row["strategy"] in {"", *strategies()}
        for sentence in (row["does"], row["decoding"], row["nearest"]):
            assert sentence.endswith(".") and len(sentence) > 20
    with papers.INDEX.with_name("far_papers.csv").open(newline="", encoding="utf-8") as file:
        assert len({row["slug"] for row in csv.DictReader(file)}) == len(papers.table("far_papers"))
