"""The lens KL-tracing: its map is that of the tracers, its edges and costs are counted, its limits are
sentences.
"""

import pytest
import torch

from decoders.lenses.kl_trace import MASKED, NOISE
from decoders.lenses.registry import find, look
from decoders.models.table_model import TableModel
from decoders.trace.events import Depend
from tests.helpers import tiny_models
from visualizers.figures import caption, lens_kl
from visualizers.figures.lenses import figures

TEXT = [5, 9, 5, 40, 41, 7, 9, 12]


def test_the_map_is_lower_triangular_and_its_edges_are_its_cells(tiny_model):
    frame = look("kl_trace", tiny_model(), TEXT, {"copies": 2})
    found = frame.data["differences"]
    assert (found.tril(-1) == 0).all() and (found.diagonal() > 0).all()
    edges = {(e.source, e.target): e.weight for e in frame.of(Depend)}
    assert edges and all(i < j and weight == float(found[i, j]) for (i, j), weight in edges.items())
    assert sum(f.tokens for f in frame.forwards) == 8 + 2 * 36 and all(
        f.kind == "lens" for f in frame.forwards
    )
    assert frame.data["peaks"][:2] == [1 + int(found[0, 1:].argmax()), 2 + int(found[1, 2:].argmax())]
    assert "nats" in frame.says and frame.to_json()["events"]


def test_noise_needs_embeddings(tiny_model):
    frame = look("kl_trace", tiny_model(), TEXT, {"tracer": NOISE, "copies": 1})
    assert (frame.data["differences"].diagonal() > 0).all()
    table = TableModel(lambda text: [0.25] * 4, 4)
    with pytest.raises(ValueError, match="noise needs the input embeddings"):
        look("kl_trace", table, [1, 2], {"tracer": NOISE})
    assert look("kl_trace", table, [1, 2, 3]).says.startswith("No other prediction moves")


def test_a_masked_text_is_read_on_both_sides(tiny_model, monkeypatch):
    model = tiny_model()
    monkeypatch.setattr(model, "_companions", {"diffusion": tiny_models.make("masked")})
    frame = look("kl_trace", model, TEXT, {"tracer": MASKED, "copies": 1})
    found = frame.data["differences"]
    assert float(found.nan_to_num().tril(-1).max()) > 0 and float(found.nan_to_num().triu(1).max()) > 0
    assert found.diagonal().isnan().all()  # a place is changed or masked
    assert torch.equal(
        found.isnan(), look("kl_trace", model, TEXT, {"tracer": MASKED}).data["differences"].isnan()
    )
    with pytest.raises(ValueError, match="one token cannot be half masked"):
        look("kl_trace", model, TEXT[:1], {"tracer": MASKED})
    monkeypatch.setattr(model, "_companions", {"diffusion": None})
    with pytest.raises(ValueError, match="No masked-diffusion model is shipped"):
        look("kl_trace", model, TEXT, {"tracer": MASKED})


def test_long_texts_are_refused(tiny_model):
    with pytest.raises(ValueError, match="reads 1 to 96 tokens"):
        look("kl_trace", tiny_model(), [5] * 97)


def test_its_figures_show_the_map_and_as_many_edges_as_are_asked_for(tiny_model):
    frame = look("kl_trace", tiny_model(), TEXT, {"copies": 1})
    options = find("kl_trace").check({"edges": 5, "place": 2})[1]
    drawn, edges = figures(find("kl_trace").figures, frame, "dark", options)
    cells = drawn.data[0]
    assert [list(row[:at]) for at, row in enumerate(cells.z)] == [[None] * at for at in range(8)]
    assert cells.z[1][3] == float(frame.data["differences"][1, 3])
    assert list(drawn.data[1].x) == [peak for peak in frame.data["peaks"] if peak is not None]
    assert len(edges.data) == 5 and {one.x[0] for one in edges.data} == {1}
    assert "5 strongest edges of position 2" in caption(edges)
    strongest = max(frame.of(Depend), key=lambda one: one.weight)
    assert lens_kl.chosen_edges(frame, 3, 0)[0] == strongest
